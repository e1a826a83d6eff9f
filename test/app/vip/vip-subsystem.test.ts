import { expect, onTestFinished, test } from 'vitest';
import { VipKeeper, type VipKeeperParts } from '../../../src/app/vip/vip-keeper.js';
import { vipStatus } from '../../../src/app/vip/vip-status.js';
import { VipSubsystem } from '../../../src/app/vip/vip-subsystem.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { heartbeatAnswer, type VipWord } from '../../../src/domain/link/heartbeat.js';
import type { ServerMessage } from '../../../src/domain/link/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeJournal } from '../../fakes/fake-journal.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeVipLink, FakeVirtualAddress } from '../../fakes/fake-virtual-address.js';
import { FakeSession, serverFacts } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };
const base64 = (text: string) => Buffer.from(text).toString('base64');

async function rig(more: Partial<VipKeeperParts> = {}) {
  const clock = new FakeClock();
  const journal = new FakeJournal();
  await journal.open(options);
  const bootTime = () => 1_000_000 + clock.monotonic();
  const link = new FakeVipLink();
  const address = new FakeVirtualAddress(bootTime, link);
  const logger = new FakeLogger();
  const keeper = new VipKeeper({ address, journal, bootTime, onDisconnect: 'drop', logger, ...more });
  const asked: string[] = [];
  const control = { answer: '{"isHolder":true,"generation":5}' as string | undefined, type: 'AmIVIPHolderResponse', delayMs: 0 };
  const ask = async (type: string, jsonB64: string): Promise<ServerMessage> => {
    asked.push(`${type} ${jsonB64}`);
    if (control.delayMs > 0) await clock.sleep(control.delayMs, options);
    if (control.answer === undefined) throw new AgentError('link.timed_out', { problem: 'no answer' });
    return { type: control.type, tag: 't', jsonB64: control.type === 'ERROR' ? control.answer : base64(control.answer) };
  };
  const subsystem = new VipSubsystem({
    ...{ keeper, address, ask, bootTime, clock, logger, random: () => 0 },
    rootFingerprint: () => 'root-1',
  });
  onTestFinished(() => subsystem.stop());
  const connect = () => {
    const session = new FakeSession(serverFacts());
    subsystem.opened(session);
    return session;
  };
  const beat = (session: FakeSession, vip?: VipWord) => {
    const answer = heartbeatAnswer({ isHealthy: true, message: '', vip }, 'beat');
    subsystem.answered(session, { sentAt: bootTime() - 100, answer });
  };
  /** With heartbeats that are answered so. */
  const live = async (session: FakeSession, seconds: number, vip?: VipWord) => {
    for (let second = 0; second < seconds; second++) {
      if (second % 5 === 0) beat(session, vip);
      await clock.advance(1_000);
    }
  };
  return { clock, link, address, keeper, subsystem, asked, control, connect, beat, live, bootTime, logger };
}

test('what an earlier process has left is gone before anybody is asked', async () => {
  const { address, subsystem, asked } = await rig();
  address.disturb('put');
  await subsystem.start();
  expect([address.seconds, asked]).toEqual([undefined, []]);
});

test('AmIVIPHolder is asked on each connect, and its answer holds', async () => {
  const { address, subsystem, asked, control, connect, clock, keeper } = await rig();
  await subsystem.start();
  connect();
  await clock.advance(0);
  expect([asked, address.seconds, address.announced]).toEqual([['AmIVIPHolder e30='], 25, 1]);
  control.answer = '{"isHolder":false,"generation":9007199254740993}';
  connect();
  await clock.advance(0);
  expect([asked.length, address.seconds, keeper.state().hold.generation]).toEqual([2, undefined, 9_007_199_254_740_993n]);
});

test.each([
  ['holder', 25],
  [undefined, 25],
  ['other', undefined],
  ['unknown', undefined],
] as const)('V1, V2: answered heartbeats that say %s', async (word, seconds) => {
  const { address, subsystem, control, connect, live, clock, beat } = await rig();
  await subsystem.start();
  const session = connect();
  await clock.advance(0);
  control.answer = undefined;
  await live(session, 30, word);
  beat(session, word);
  expect(address.seconds === undefined ? undefined : address.seconds >= 24).toBe(seconds === undefined ? undefined : true);
});

test('who holds it and hears that another does asks, and so does who is said to hold it and does not', async () => {
  const { address, subsystem, control, connect, clock, beat, asked } = await rig();
  await subsystem.start();
  const session = connect();
  await clock.advance(0);
  control.answer = '{"isHolder":false,"generation":6}';
  beat(session, 'other');
  await clock.advance(0);
  expect([asked.length, address.seconds]).toEqual([2, undefined]);
  control.answer = '{"isHolder":true,"generation":7}';
  beat(session, 'other');
  await clock.advance(0);
  expect(asked.length).toBe(2);
  beat(session, 'holder');
  await clock.advance(0);
  expect([asked.length, address.seconds]).toEqual([3, 25]);
});

test('V1: after a gap of more than 5 s it is dropped first and asked for afterwards', async () => {
  const slept = { ms: 0 };
  const clock = new FakeClock();
  const { subsystem, address, connect, asked, ...it } = await rig({ bootTime: () => 1_000_000 + clock.monotonic() + slept.ms });
  await subsystem.start();
  connect();
  await it.clock.advance(0);
  expect(asked.length).toBe(1);
  const seen: (number | undefined)[] = [];
  it.control.answer = undefined;
  slept.ms = 5_001;
  await it.clock.advance(1_000);
  seen.push(address.seconds);
  it.control.answer = '{"isHolder":true,"generation":5}';
  await it.clock.advance(1_000);
  expect([seen, it.keeper.state().counts.dropped.gap, asked.length]).toEqual([[undefined], 1, 3]);
});

test('an answer that VIP_ASSIGN or VIP_RELEASE has overtaken says nothing, and it is asked again', async () => {
  const { subsystem, address, connect, clock, control, keeper, asked } = await rig();
  await subsystem.start();
  control.delayMs = 100;
  connect();
  await clock.advance(50);
  await keeper.release(6n, options);
  await clock.advance(100);
  expect([asked.length, address.seconds, keeper.state().hold.generation]).toEqual([1, undefined, 6n]);
  control.answer = '{"isHolder":false,"generation":6}';
  await clock.advance(1_000);
  expect([asked.length, address.seconds]).toEqual([2, undefined]);
});

test.each([
  ['an ERROR', 'ERROR', 'AmIVIPHolder: no'],
  ['no JSON', 'X', 'nonsense'],
  ['no answer to it', 'X', '{}'],
  ['a number that is none', 'X', '{"isHolder":true,"generation":1.5}'],
  ['a word for a truth', 'X', '{"isHolder":"yes","generation":1}'],
])('%s is no answer: nothing is held, and it is asked again', async (_, type, answer) => {
  const { subsystem, address, connect, clock, control, asked } = await rig();
  await subsystem.start();
  Object.assign(control, { type, answer });
  connect();
  await clock.advance(3_000);
  expect([address.seconds, asked.length]).toEqual([undefined, 4]);
});

test('V2: without its control plane it is gone after 15 s', async () => {
  const { subsystem, address, connect, clock } = await rig();
  await subsystem.start();
  const session = connect();
  await clock.advance(1_000);
  session.end();
  subsystem.closed(session);
  await clock.advance(13_000);
  expect(address.seconds).toBeGreaterThan(0);
  await clock.advance(2_000);
  expect(address.seconds).toBeUndefined();
});

test('onDisconnect keep: it is held through an outage, neighbours are asked, and a conflict ends it', async () => {
  const { subsystem, address, connect, clock, link, bootTime, keeper } = await rig({ onDisconnect: 'keep' });
  await subsystem.start();
  const session = connect();
  await clock.advance(0);
  subsystem.closed(session);
  await clock.advance(120_000);
  expect(address.seconds).toBeGreaterThan(20);
  expect(address.probes).toBeGreaterThan(40);
  const other = new FakeVirtualAddress(bootTime, link);
  other.lease(bootTime() + 25_000);
  await clock.advance(2_000);
  expect([address.seconds, keeper.state().counts.dropped.conflict]).toEqual([undefined, 1]);
});

test('a failure is shown with what to do, and is over when it works again', async () => {
  const { subsystem, address, connect, clock } = await rig();
  address.fail(new AgentError('vip.not_set', { problem: 'EPERM' }));
  await subsystem.start();
  connect();
  await clock.advance(1_000);
  expect(subsystem.problems()).toMatchObject([{ subject: 'virtual IP', remedy: expect.stringContaining('CAP_NET_ADMIN') }]);
  address.fail(undefined);
  await clock.advance(1_000);
  expect(subsystem.problems()).toEqual([]);
});

test('a stop gives it up at once, and status shows what there is', async () => {
  const { subsystem, address, connect, clock, keeper, bootTime } = await rig();
  const status = () => vipStatus(address.address, keeper, clock, bootTime);
  await subsystem.start();
  connect();
  await clock.advance(2_000);
  expect(status()).toMatchObject({ address: '10.9.0.100', held: true, leftMs: 23_000, generation: 5n, alone: false });
  expect(status().since).toBe(clock.now() - 2_000);
  await subsystem.stop();
  expect(address.seconds).toBeUndefined();
  expect(status()).toMatchObject({ held: false, leftMs: 0 });
});
