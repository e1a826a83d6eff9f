import { expect, test } from 'vitest';
import { ZoneAnswers } from '../../../src/app/dns/zone-answers.js';
import { ZoneFeed } from '../../../src/app/dns/zone-feed.js';
import { VIP_RANGE_KEY } from '../../../src/domain/dataplane/vip.js';
import { type Change, logKey } from '../../../src/domain/log/model.js';
import { dnsResponderContract } from '../../contract/dns-responder.contract.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeDnsResponder } from '../../fakes/fake-dns-responder.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { drop, options, put, RemoteRig } from '../../support/remote-rig.js';

dnsResponderContract('fake', () => {
  const responder = new FakeDnsResponder();
  return { responder, occupy: async ({ address, port }) => responder.occupy(`${address}:${port}`) };
});

const named = (name: string, address: string): readonly Change[] => [
  put(name),
  { key: logKey(`vip/${address}`), value: JSON.stringify({ service: `default/${name}` }) },
];
const range = (value: string): Change => ({ key: VIP_RANGE_KEY, value: JSON.stringify(value) });

async function setUp(isServing = true) {
  const rig = new RemoteRig();
  await rig.write(range('10.192.0.0/16'), ...named('a', '10.192.0.2'));
  await rig.start();
  const answers = new ZoneAnswers({ view: rig.consumer, origin: ['holdfast'] });
  await answers.start();
  const [responder, clock] = [new FakeDnsResponder(), new FakeClock()];
  const parts = {
    view: rig.consumer,
    zone: answers.zone,
    responder,
    isServing,
    clock,
    random: () => 0,
    logger: new FakeLogger(),
  };
  const feed = new ZoneFeed(parts);
  await feed.start();
  const stop = async () => {
    await feed.stop();
    await answers.stop();
    await rig.consumer.stop(options.signal);
  };
  return { rig, responder, clock, stop };
}

const lines = (responder: FakeDnsResponder) => responder.dump().split('\n').slice(1);

test('the table holds the services of the start, and follows them', async () => {
  const { rig, responder, clock, stop } = await setUp();
  expect(lines(responder)).toEqual([
    'apexes: holdfast 192.10.in-addr.arpa',
    'default/: default.holdfast',
    expect.stringMatching(/^default\/a: a\.default\.holdfast .*2\.0\.192\.10\.in-addr\.arpa$/),
    'zone: holdfast',
  ]);
  await rig.write(...named('b', '10.192.0.3'), drop('a'));
  await clock.advance(20);
  await expect
    .poll(() => lines(responder).map((line) => line.split(':')[0]))
    .toEqual(['apexes', 'default/', 'default/b', 'zone']);
  await rig.write(drop('b'));
  await clock.advance(20);
  await expect.poll(() => lines(responder).map((line) => line.split(':')[0])).toEqual(['apexes', 'zone']);
  await stop();
});

test('another range of addresses: its reverse zones', async () => {
  const { rig, responder, clock, stop } = await setUp();
  await rig.write(range('10.192.0.0/15'));
  await clock.advance(20);
  await expect.poll(() => lines(responder)[0]).toBe('apexes: holdfast 192.10.in-addr.arpa 193.10.in-addr.arpa');
  await stop();
});

test('what could not be applied is applied later', async () => {
  const { rig, responder, clock, stop } = await setUp();
  responder.failNextApply(new Error('no memory'));
  await rig.write(...named('b', '10.192.0.3'));
  await clock.advance(20);
  expect(responder.dump()).not.toContain('default/b');
  await clock.advance(2_000);
  await expect.poll(() => responder.dump()).toContain('default/b');
  await stop();
});

test('where nobody is answered there are no threads', async () => {
  const { responder, stop } = await setUp(false);
  expect(responder.stats().threads).toBe(0);
  await stop();
});
