import { describe, expect, onTestFinished, test } from 'vitest';
import { RenewalSubsystem } from '../../../src/app/certificate/renewal-subsystem.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import { FakeKeyMaker } from '../../fakes/fake-certificate-authority.js';
import { fakeCsr, fakeKey, parseFakeCertificate } from '../../fakes/fake-certificates.js';
import { FakeRenewalClient } from '../../fakes/fake-enrolment-clients.js';
import { FakePairStore } from '../../fakes/fake-pair-store.js';
import { DAY, enrolmentRig, MINUTE, options, peer } from './rig.js';

const HOUR = 60 * MINUTE;
const unreachable = () => new AgentError('link.unreachable', { problem: 'nothing listens at cp:9192' });
const refused = () => new AgentError('certificate.refused', { problem: 'cp:9192 refused' });

/** A node that has registered, with its control plane. `random` 0.5: no jitter. */
async function setUp({ random = 0.5, registered = true } = {}) {
  const rig = enrolmentRig();
  await rig.view.loaded();
  const { clock, logger, service } = rig;
  const pairs = new FakePairStore();
  const asCalled = (pair: Pair) => {
    const node = peer(pair.certificate);
    try {
      service.admit(node);
    } catch (cause) {
      throw new AgentError('certificate.refused', { problem: String(cause) }, { cause });
    }
    return node;
  };
  const client = new FakeRenewalClient({
    regenerate: async (pair, csr, each) => service.renew(asCalled(pair), csr, each),
    tryPair: async (pair) => {
      asCalled(pair);
    },
  });
  if (registered) {
    const { certificate, ca } = await rig.register({ token: await rig.token(), csr: fakeCsr('first') });
    const { serial } = await pairs.stage({ certificate, privateKey: fakeKey('first'), ca }, options);
    await pairs.activate(serial, options);
    await rig.seen();
  }
  const renewed: string[] = [];
  const make = () => {
    const keys = new FakeKeyMaker();
    const part = new RenewalSubsystem({
      pairs,
      client,
      keys,
      clock,
      logger,
      random: () => random,
      linked: async () => {},
      fingerprintOf: (root) => parseFakeCertificate(root).fingerprint,
      onRenewed: ({ serial }) => renewed.push(serial),
    });
    onTestFinished(() => part.stop());
    return part;
  };
  const current = async () => (await pairs.load(options)).current;
  return { ...rig, pairs, client, renewed, make, current };
}

describe('F5: the node renews its certificate', () => {
  test('when a third of its lifetime is left, while it runs, and tells', async () => {
    const { clock, current, make, pairs, renewed } = await setUp();
    const first = await current();
    const part = make();
    await part.start();
    await clock.advance(60 * DAY - HOUR);
    expect(pairs.dump()).toBe(`*${first?.serial}`);
    await clock.advance(2 * HOUR);
    const next = await current();
    expect(next?.serial).not.toBe(first?.serial);
    expect(renewed).toEqual([next?.serial]);
    expect(pairs.dump().split(' ')).toHaveLength(2);
    expect(part.problems()).toEqual([]);
  });

  test.each([
    [0, 63],
    [0.5, 60],
    [0.999, 57],
  ])('jittered: with chance %d on day %d', async (random, day) => {
    const { clock, make, renewed } = await setUp({ random });
    await make().start();
    await clock.advance((day - 0.2) * DAY);
    expect(renewed).toEqual([]);
    await clock.advance(0.5 * DAY);
    expect(renewed).toHaveLength(1);
  });

  test('at start, when the time came while it was off', async () => {
    const { clock, make, renewed } = await setUp();
    await clock.advance(80 * DAY);
    await make().start();
    await clock.advance(0);
    expect(renewed).toHaveLength(1);
  });

  test('again and again', async () => {
    const { clock, make, renewed } = await setUp();
    await make().start();
    await clock.advance(200 * DAY);
    expect(renewed).toHaveLength(3);
  });

  test('a node without a certificate waits for one', async () => {
    const { clock, make, renewed } = await setUp({ registered: false });
    const part = make();
    await part.start();
    await clock.advance(2 * DAY);
    expect([renewed, part.problems()]).toEqual([[], []]);
  });

  test('the old certificate is refused five minutes after the new one was tried', async () => {
    const { clock, current, make, service, seen } = await setUp();
    const first = await current();
    await clock.advance(70 * DAY);
    await make().start();
    await clock.advance(5 * MINUTE);
    await seen();
    expect(() => service.admit(peer(first?.certificate ?? ''))).toThrow('a newer certificate of this node is in use');
  });
});

describe('F6: what goes wrong on the way', () => {
  test('no control plane: the old one is in use, and it is tried again', async () => {
    const { client, clock, current, make, renewed } = await setUp();
    const first = await current();
    await clock.advance(70 * DAY);
    client.regenerating.failNext(unreachable(), unreachable());
    await make().start();
    await clock.advance(3 * MINUTE);
    expect([(await current())?.serial, renewed]).toEqual([first?.serial, []]);
    await clock.advance(10 * MINUTE);
    expect(renewed).toHaveLength(1);
  });

  test('the new one cannot be tried: the old one is in use, the new one is kept and tried again, and no other is asked for', async () => {
    const { client, clock, current, make, pairs, renewed, record } = await setUp();
    const first = await current();
    await clock.advance(70 * DAY);
    client.trying.failNext(unreachable());
    await make().start();
    await clock.advance(0);
    const { staged } = await pairs.load(options);
    expect([(await current())?.serial, renewed]).toEqual([first?.serial, []]);
    await clock.advance(5 * MINUTE);
    expect(renewed).toEqual([staged?.serial]);
    expect((await record(peer(staged?.certificate ?? '').identity.nid))?.renewals).toHaveLength(1);
  });

  test('the new one is refused: another is asked for', async () => {
    const { client, clock, current, make, pairs, renewed } = await setUp();
    await clock.advance(70 * DAY);
    client.trying.failNext(refused());
    await make().start();
    await clock.advance(0);
    const { staged } = await pairs.load(options);
    await clock.advance(5 * MINUTE);
    expect(renewed).toEqual([(await current())?.serial]);
    expect(renewed).not.toContain(staged?.serial);
    expect(pairs.dump().split(' ')).toHaveLength(2);
  });

  test('a server that dies looks like a refusal of one that it had taken: the node is not cut off', async () => {
    const { client, clock, current, make, renewed, seen } = await setUp();
    await clock.advance(70 * DAY);
    client.trying.loseNextAnswer(unreachable());
    const part = make();
    await part.start();
    await clock.advance(0);
    await seen();
    // At the next try the connection is closed; by the one after it the old certificate is retired.
    client.trying.failNext(refused());
    await clock.advance(30 * MINUTE);
    expect(renewed).toHaveLength(1);
    expect((await current())?.serial).toBe(renewed[0]);
  });

  test('and neither is it when the old one is retired before another could be asked for', async () => {
    const { client, clock, make, pairs, renewed, seen } = await setUp();
    await clock.advance(70 * DAY);
    client.trying.loseNextAnswer(unreachable());
    const part = make();
    await part.start();
    await clock.advance(0);
    await seen();
    const { staged } = await pairs.load(options);
    client.trying.failNext(refused());
    client.regenerating.failNext(unreachable(), unreachable(), unreachable());
    await clock.advance(3 * HOUR);
    expect(renewed).toEqual([staged?.serial]);
  });

  test('the process dies after the server has seen the new one: it is in use at the next start, also when the old one is retired by then', async () => {
    const { client, clock, current, make, pairs, renewed, seen } = await setUp();
    await clock.advance(70 * DAY);
    client.trying.loseNextAnswer(unreachable());
    const dying = make();
    await dying.start();
    await clock.advance(0);
    await seen();
    const { staged } = await pairs.load(options);
    await dying.stop();
    await clock.advance(DAY);
    await make().start();
    await clock.advance(0);
    expect(renewed).toEqual([staged?.serial]);
    expect(await current()).toEqual(staged);
  });

  test('a registration that died before its pair was in use is brought to an end', async () => {
    const rig = await setUp({ registered: false });
    const { certificate, ca } = await rig.register({ token: await rig.token(), csr: fakeCsr('first') });
    const { serial } = await rig.pairs.stage({ certificate, privateKey: fakeKey('first'), ca }, options);
    await rig.seen();
    await rig.make().start();
    await rig.clock.advance(0);
    expect([rig.renewed, rig.pairs.dump()]).toEqual([[serial], `*${serial}`]);
  });

  test('the disk is full: the old one is in use', async () => {
    const { clock, current, make, pairs, renewed } = await setUp();
    const first = await current();
    await clock.advance(70 * DAY);
    const part = make();
    pairs.failNext(new AgentError('certificate.not_written', { problem: 'no space' }));
    await part.start();
    await clock.advance(0);
    expect([(await current())?.serial, renewed]).toEqual([first?.serial, []]);
    await clock.advance(5 * MINUTE);
    expect(renewed).toHaveLength(1);
  });

  test('new ones that are all refused: ten a day are asked for at most, and never one too many', async () => {
    const { client, clock, current, logger, make, record } = await setUp({ random: 0 });
    await clock.advance(70 * DAY);
    client.trying.failNext(...Array.from({ length: 1_000 }, refused));
    await make().start();
    await clock.advance(DAY - MINUTE);
    const { nid } = peer((await current())?.certificate ?? '').identity;
    expect((await record(nid))?.renewals).toHaveLength(10);
    expect(JSON.stringify(logger.lines.map(({ fields }) => String(fields.error)))).not.toContain('too_many');
    await clock.advance(DAY);
    expect((await record(nid))?.renewals.length).toBeLessThanOrEqual(10);
  });

  test('one that is in use, though what came after that failed, is told of at the next look', async () => {
    const { clock, current, make, pairs, renewed } = await setUp();
    await clock.advance(70 * DAY);
    pairs.failAfterActivation(new AgentError('certificate.not_written', { problem: 'EIO' }));
    await make().start();
    await clock.advance(0);
    expect(renewed).toEqual([]);
    await clock.advance(3 * MINUTE);
    expect(renewed).toEqual([(await current())?.serial]);
  });

  test('looking at once shortens no pause', async () => {
    const { client, clock, make, renewed } = await setUp();
    await clock.advance(70 * DAY);
    client.regenerating.failNext(unreachable());
    const part = make();
    await part.start();
    await clock.advance(0);
    part.look();
    await clock.advance(MINUTE - 1);
    expect(renewed).toEqual([]);
    await clock.advance(MINUTE);
    expect(renewed).toHaveLength(1);
  });
});

describe('K: what is reported', () => {
  test('nothing while a week is left; then that it cannot be renewed, and why', async () => {
    const { client, clock, make } = await setUp();
    await clock.advance(70 * DAY);
    client.regenerating.failNext(...Array.from({ length: 500 }, unreachable));
    const part = make();
    await part.start();
    await clock.advance(12 * DAY);
    expect(part.problems()).toEqual([]);
    await clock.advance(2 * DAY);
    expect(part.problems()).toEqual([
      {
        subject: 'certificate',
        reason: 'expires in 6 days and cannot be renewed: link.unreachable: nothing listens at cp:9192',
        since: undefined,
        remedy: 'check the address, the name service and the firewall on the way to the control plane',
      },
    ]);
  });

  test('one that has expired, with both times and this clock', async () => {
    const { client, clock, make } = await setUp();
    client.regenerating.failNext(...Array.from({ length: 500 }, unreachable));
    await clock.advance(92 * DAY);
    const part = make();
    await part.start();
    await clock.advance(0);
    expect(part.problems()).toMatchObject([
      {
        reason:
          "expired 2 days ago: valid from 2026-01-31T11:50:00Z to 2026-05-01T12:00:00Z, and this machine's clock says 2026-05-03T12:00:00Z",
        remedy: 'register the node again with a new token, unless the clock is wrong',
      },
    ]);
  });

  test('a clock that is behind', async () => {
    const { clock, make } = await setUp();
    clock.setWall(clock.now() - 2 * HOUR);
    const part = make();
    await part.start();
    await clock.advance(0);
    expect(part.problems()).toMatchObject([
      {
        reason:
          "not valid yet: valid from 2026-01-31T11:50:00Z to 2026-05-01T12:00:00Z, and this machine's clock says 2026-01-31T10:00:00Z",
        remedy: 'set the clock of this machine',
      },
    ]);
  });

  test('damage on disk', async () => {
    const { clock, current, make, pairs } = await setUp();
    pairs.damage((await current())?.serial ?? '');
    const part = make();
    await part.start();
    await clock.advance(0);
    expect(part.problems()).toMatchObject([{ reason: 'is damaged' }]);
  });
});

test('may be stopped before its start, and twice', async () => {
  const { make } = await setUp();
  const part = make();
  await part.stop();
  await part.start();
  await part.stop();
  await part.stop();
});

describe('F1: the root of nodes is another', () => {
  const other = 'f'.repeat(64);
  const SPREAD = 10 * MINUTE;

  test('a certificate of the former one is renewed within the spread, not before the time is due', async () => {
    const { clock, make, renewed } = await setUp();
    const part = make();
    await part.start();
    await clock.advance(2 * MINUTE);
    part.rootIs(other, SPREAD);
    await clock.advance(SPREAD / 2 - 1_000);
    expect(renewed).toEqual([]);
    await clock.advance(SPREAD);
    expect(renewed.length).toBeGreaterThan(0);
  });

  test('what a server that lags behind answers is not asked for without end', async () => {
    const { clock, make, renewed } = await setUp();
    const part = make();
    await part.start();
    for (let beat = 0; beat < 12 * 60; beat += 1) {
      part.rootIs(other, SPREAD);
      await clock.advance(5_000);
    }
    expect(renewed.length).toBeLessThanOrEqual(10);
  });

  test('one of the present root stays', async () => {
    const { clock, current, make, renewed } = await setUp();
    const part = make();
    await part.start();
    part.rootIs(parseFakeCertificate((await current())?.ca ?? '').fingerprint, SPREAD);
    await clock.advance(2 * DAY);
    expect(renewed).toEqual([]);
  });
});
