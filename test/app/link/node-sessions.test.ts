import { describe, expect, test } from 'vitest';
import { CLONE_MS, DUPLICATE_RETRY_MS } from '../../../src/domain/link/fence.js';
import { HEARTBEAT_TYPE } from '../../../src/domain/link/model.js';
import { agentFacts, base64, type FakeNodeStream, fleetRig, n1, n2, settle } from '../../support/fleet-rig.js';

/** Takes hold of a stream that will not be opened. */
function refusedStream() {
  let held: FakeNodeStream | undefined;
  const made = (stream: FakeNodeStream) => {
    held = stream;
  };
  return { made, stream: () => held };
}

const restarted = (facts = {}) => agentFacts({ instance: 'i2', ...facts });
const elsewhere = (facts = {}) => agentFacts({ instance: 'i9', boot: 'b9', hardware: 'h9', ...facts });

describe('B2: the epoch', () => {
  test('rises with every stream of a registration, and is known with who has it', async () => {
    const { connect, store, clock } = await fleetRig();
    const first = await connect();
    expect(first.facts).toMatchObject({ fleet: 'f1', server: 's1', epoch: 1n, spreadMs: 10_000, window: 32 });
    await first.close();
    expect((await connect({ agent: agentFacts({ session: 2 }) })).facts.epoch).toBe(2n);
    expect((await connect({ nid: n2 })).facts.epoch).toBe(1n);
    const kept = JSON.parse((await store.get('epoch/n1/r1', { signal: AbortSignal.any([]) }))?.value ?? '');
    expect(kept).toMatchObject({ epoch: '2', server: 's1', instance: 'i1', at: clock.now(), address: '192.0.2.1:4000' });
  });

  test('goes on after a restart of the server, and begins anew for another registration', async () => {
    const { connect, store } = await fleetRig();
    await connect();
    const { connect: again } = await fleetRig({ store });
    expect((await again()).facts.epoch).toBe(2n);
    expect((await again({ registration: 'r2' })).facts.epoch).toBe(1n);
  });

  test('is raised once when the answer of the store is lost, written or not', async () => {
    const { connect, store } = await fleetRig();
    for (const [outcome, expected] of [
      ['written', 1n],
      ['not written', 2n],
    ] as const) {
      store.loseNextAnswer(outcome);
      const { facts, close } = await connect();
      expect(facts.epoch).toBe(expected);
      await close();
    }
  });

  test('raised at another replica it ends our stream', async () => {
    const { connect, store, sessions } = await fleetRig();
    const { stream } = await connect();
    const other = await fleetRig({ server: 's2', store });
    expect((await other.connect({ agent: restarted() })).facts.epoch).toBe(2n);
    expect(stream.ended).toEqual({ status: 'superseded', message: 'SUPERSEDED epoch 2' });
    expect(sessions.get(n1)).toBeUndefined();
    expect(other.sessions.get(n1)?.epoch).toBe(2n);
  });

  test('without a store no stream is opened, and those that are open stay', async () => {
    const { connect, store, sessions } = await fleetRig();
    const { stream } = await connect();
    store.setUnavailable(true);
    await expect(connect({ nid: n2 })).rejects.toMatchObject({ code: 'store.unavailable' });
    await expect(connect({ agent: restarted() })).rejects.toMatchObject({ code: 'store.unavailable' });
    expect(stream.ended).toBeUndefined();
    expect(sessions.get(n1)).toBeDefined();
  });
});

test('no stream is taken before the store was read: a result that nobody knows yet would be lost', async () => {
  let isReady = false;
  const { connect } = await fleetRig({ isReady: () => isReady });
  await expect(connect()).rejects.toMatchObject({ code: 'store.unavailable' });
  isReady = true;
  expect((await connect()).facts.epoch).toBe(1n);
});

describe('B4: a second stream', () => {
  test('of the same process: the newer session wins at once, the older is refused', async () => {
    const { connect } = await fleetRig();
    const capabilities = new Set<never>();
    const first = await connect({ agent: agentFacts({ session: 1, capabilities }) });
    const second = await connect({ agent: agentFacts({ session: 3, capabilities }) });
    expect(first.stream.ended?.status).toBe('superseded');
    const late = refusedStream();
    await expect(connect({ agent: agentFacts({ session: 2 }), made: late.made })).rejects.toMatchObject({ code: 'link.refused' });
    expect(late.stream()?.ended?.status).toBe('superseded');
    expect(second.stream.ended).toBeUndefined();
  });

  test('B3: of a process that moves: the old one is drained, its heartbeats are answered, its results come on the new one', async () => {
    const { connect, clock, sessions } = await fleetRig();
    const first = await connect();
    const second = await connect({ agent: agentFacts({ session: 2 }) });
    expect(first.stream.sent).toMatchObject([{ type: 'DRAINING', epoch: 1n, jsonB64: base64('{"epoch":"2"}') }]);
    await first.beat('b1');
    await first.say('NODE_STATUS', 'a');
    expect(first.stream.sent.map(({ tag }) => tag).slice(1)).toEqual(['b1']);
    expect(sessions.get(n1)?.epoch).toBe(2n);
    await clock.advance(20_000);
    expect(first.stream.ended?.status).toBe('superseded');
    expect(second.stream.ended).toBeUndefined();
  });

  test('of a restarted agent wins at once', async () => {
    const { connect } = await fleetRig();
    const first = await connect();
    await connect({ agent: restarted() });
    expect(first.stream.ended?.status).toBe('superseded');
  });

  test('of a machine that was started anew wins after 7 s of silence, or when the first one ends', async () => {
    const { connect, clock, sessions } = await fleetRig();
    const first = await connect();
    const second = connect({ agent: restarted({ boot: 'b2' }) });
    await clock.advance(CLONE_MS - 1);
    expect(sessions.get(n1)?.epoch).toBe(1n);
    await clock.advance(1);
    expect((await second).facts.epoch).toBe(2n);
    expect(first.stream.ended?.status).toBe('superseded');
    const third = connect({ agent: agentFacts({ instance: 'i3', boot: 'b3' }) });
    await settle();
    await (await second).close();
    expect((await third).facts.epoch).toBe(3n);
  });

  test('of a clone is turned away for 5 min, as the registered hardware goes on beating', async () => {
    const { connect, clock, sessions, presence, logger } = await fleetRig();
    const first = await connect();
    const turnedAway = refusedStream();
    const clone = connect({ agent: elsewhere(), address: '198.51.100.7:1', made: turnedAway.made });
    const refusal = expect(clone).rejects.toMatchObject({ code: 'link.refused' });
    await clock.advance(3_000);
    await first.beat();
    await refusal;
    expect(turnedAway.stream()?.ended).toEqual({
      status: 'duplicate',
      message: expect.stringMatching(/^DUPLICATE_NODE: 192\.0\.2\.1:4000 .* since 2026-01-31T12:00:00/),
      retryMs: DUPLICATE_RETRY_MS,
    });
    expect(first.stream.ended).toBeUndefined();
    expect(sessions.get(n1)?.epoch).toBe(1n);
    expect(presence.get(n1)?.problem).toMatch(/^DUPLICATE_NODE: 198\.51\.100\.7:1 was turned away/);
    expect(logger.dump('error')).toContain('two machines have the certificate of one node');
  });

  test('of the registered hardware takes the place of its clone', async () => {
    const { connect, clock } = await fleetRig();
    await (await connect()).close();
    const clone = await connect({ agent: elsewhere() });
    const genuine = connect({ agent: restarted() });
    await clock.advance(5_000);
    await clone.beat();
    expect((await genuine).facts.epoch).toBe(3n);
    expect(clone.stream.ended).toMatchObject({ status: 'duplicate', retryMs: DUPLICATE_RETRY_MS });
  });

  test('what is said of two machines ends some time after the last one was turned away', async () => {
    const { connect, clock, presence } = await fleetRig();
    const first = await connect();
    const clone = connect({ agent: elsewhere() }).catch(() => {});
    await settle();
    await first.beat();
    await clone;
    await clock.advance(2 * DUPLICATE_RETRY_MS - 1);
    await first.beat();
    expect(presence.get(n1)?.problem).not.toBe('');
    expect(presence.problems()).toMatchObject([
      { subject: 'node n1', reason: /^DUPLICATE_NODE/, remedy: /register it as another/ },
    ]);
    await clock.advance(1);
    await first.beat();
    expect(presence.get(n1)?.problem).toBe('');
    expect(presence.problems()).toEqual([]);
  });

  test('of older agents: the newest wins; four changes from two addresses in a minute are told', async () => {
    const { connect, presence, sessions, clock } = await fleetRig();
    const address = (number: number) => `192.0.2.${number}:1`;
    const first = await connect({ agent: undefined, address: address(1) });
    for (const number of [2, 1, 2]) await connect({ agent: undefined, address: address(number) });
    expect(first.stream.ended?.status).toBe('superseded');
    expect(presence.get(n1)?.problem).toBe('');
    expect(sessions.get(n1)?.holdMs()).toBe(0);
    await connect({ agent: undefined, address: address(1) });
    expect(presence.get(n1)?.problem).toContain('DUPLICATE_NODE');
    expect(sessions.get(n1)?.holdMs()).toBe(15_000);
    await clock.advance(15_000);
    expect(sessions.get(n1)?.holdMs()).toBe(0);
  });
});

describe('heartbeats', () => {
  test('C6: are answered at once, whatever the store does', async () => {
    const { connect, store } = await fleetRig();
    const { stream, say, beat } = await connect({ agent: undefined });
    store.setUnavailable(true);
    await beat('b1', { status: 'ready', version: '1.0' });
    await say(HEARTBEAT_TYPE, 'b2', '%%%');
    const answers = stream.sent.map(({ type, tag, jsonB64 }) => [
      type,
      tag,
      JSON.parse(Buffer.from(jsonB64, 'base64').toString()),
    ]);
    const healthy = { isHealthy: true, message: '' };
    expect(answers).toEqual([
      [HEARTBEAT_TYPE, 'b1', healthy],
      [HEARTBEAT_TYPE, 'b2', healthy],
    ]);
  });

  test('H2: the highest audit head is kept, and a lower one is told', async () => {
    const { connect, presence, logger } = await fleetRig();
    const { beat } = await connect();
    const head = (sequence: number) => ({ auditHead: { sequence, digest: 'a'.repeat(64) } });
    await beat('b1', head(7));
    await beat('b2', head(9));
    expect(logger.dump('error')).toBe('');
    await beat('b3', head(8));
    expect(presence.get(n1)?.auditHead?.sequence).toBe(9n);
    expect(logger.dump('error')).toContain('audit log of a node has lost its end');
  });
});

describe('messages', () => {
  test('C2: replies to what nobody asked are dropped and counted', async () => {
    const { connect, sessions } = await fleetRig();
    const { stream, say } = await connect({ agent: undefined });
    await say('ERROR', 'nobody knows', 'unknown type');
    await say('GetControlPlaneNodes', 'question', '');
    expect(stream.sent).toEqual([]);
    expect(sessions.counters).toMatchObject({ opened: 1, heartbeats: 0, unclaimed: 2 });
  });

  test('B3: of a stream that is over are not looked at', async () => {
    const { connect, sessions } = await fleetRig();
    const first = await connect();
    await connect({ agent: restarted() });
    await first.say('ERROR', 'late');
    await first.beat();
    expect(first.stream.sent).toEqual([]);
    expect(sessions.counters.unclaimed).toBe(0);
  });
});

test('F4: streams whose certificates are revoked are ended, and no others', async () => {
  const { connect, sessions } = await fleetRig();
  const [first, second] = [await connect(), await connect({ nid: n2 })];
  sessions.endWhere(({ identity }) => identity.nid === n2, { status: 'revoked', message: 'its certificate is revoked' });
  expect([first.stream.ended, second.stream.ended?.status]).toEqual([undefined, 'revoked']);
});

test('I3: a planned stop spreads the come-back of all agents', async () => {
  const { connect, sessions } = await fleetRig();
  const streams = [];
  for (const name of ['a', 'b', 'c', 'd']) streams.push((await connect({ nid: name as typeof n1 })).stream);
  sessions.goodbye();
  await sessions.stop();
  expect(streams.map(({ ended }) => ended?.status)).toEqual(Array.from({ length: 4 }, () => 'stopping'));
  expect(streams.map(({ ended }) => ended?.retryMs)).toEqual([2_500, 5_000, 7_500, 10_000]);
  await expect(connect()).rejects.toMatchObject({ code: 'store.unavailable' });
});

describe('B4: two streams of one node at two replicas', () => {
  const atOther = '198.51.100.7:1';

  /** The node's own stream is at `a`, whose hardware is the registered one unless `first` says otherwise. */
  async function replicas(first = agentFacts()) {
    const a = await fleetRig();
    const b = await fleetRig({ server: 's2', store: a.store, clock: a.clock });
    const own = await a.connect({ agent: first });
    const newcomer = (agent = elsewhere()) => {
      const held = refusedStream();
      const opened = b.connect({ agent, address: atOther, made: held.made }).then(
        ({ facts }) => `epoch ${facts.epoch}`,
        (error: { readonly code: string }) => error.code,
      );
      return { opened, stream: held.stream };
    };
    return { a, b, own, newcomer, clock: a.clock, store: a.store };
  }

  const contests = async (store: Awaited<ReturnType<typeof replicas>>['store']) =>
    (await store.list('contest/', { signal: AbortSignal.any([]) })).length;

  test('a clone is turned away for 5 min as the first one goes on beating, and the replica that has that one shows it', async () => {
    const { a, b, own, newcomer, clock, store } = await replicas();
    const clone = newcomer();
    await clock.advance(3_000);
    await own.beat();
    expect(await clone.opened).toBe('link.refused');
    expect(clone.stream()?.ended).toEqual({
      status: 'duplicate',
      message: expect.stringMatching(/^DUPLICATE_NODE: 192\.0\.2\.1:4000 .* since 2026-01-31T12:00:00/),
      retryMs: DUPLICATE_RETRY_MS,
    });
    expect([own.stream.ended, a.sessions.get(n1)?.epoch, b.sessions.get(n1)]).toEqual([undefined, 1n, undefined]);
    expect(a.presence.get(n1)?.problem).toBe(`DUPLICATE_NODE: ${atOther} was turned away, 192.0.2.1:4000 stays`);
    await clock.advance(5_000);
    expect(b.presence.get(n1)?.problem).toMatch(/^DUPLICATE_NODE/);
    expect([a.sessions.counters.duplicates, b.sessions.counters.duplicates]).toEqual([1, 1]);
    expect(await contests(store)).toBe(0);
  });

  test('the one with the registered hardware wins, also as the newcomer: the other is turned away for 5 min', async () => {
    const { a, b, own, newcomer, clock, store } = await replicas();
    await own.close();
    await clock.advance(5_000);
    // The clone has the place at `a` by now: nobody else was there.
    const clone = await a.connect({ agent: elsewhere(), address: atOther });
    const real = newcomer(agentFacts({ instance: 'i2', session: 1 }));
    await clock.advance(1_000);
    await clone.beat();
    expect(await real.opened).toBe('epoch 3');
    expect(clone.stream.ended).toMatchObject({ status: 'duplicate', retryMs: DUPLICATE_RETRY_MS });
    expect([a.sessions.get(n1), b.sessions.get(n1)?.epoch]).toEqual([undefined, 3n]);
    expect(await contests(store)).toBe(0);
  });

  test('a machine that was started anew wins after the silence of its former stream, and is given nothing before', async () => {
    const { a, b, own, newcomer, clock } = await replicas();
    const again = newcomer(restarted({ boot: 'b2' }));
    await clock.advance(CLONE_MS);
    expect([a.sessions.get(n1)?.epoch, b.sessions.get(n1)]).toEqual([1n, undefined]);
    await clock.advance(1_000);
    expect(await again.opened).toBe('epoch 2');
    expect(own.stream.ended?.status).toBe('superseded');
  });

  test('at once when the former stream ends meanwhile, or has ended before', async () => {
    const { b, own, newcomer, clock } = await replicas();
    const again = newcomer(restarted({ boot: 'b2' }));
    await clock.advance(1_000);
    await own.close();
    await clock.advance(0);
    expect(await again.opened).toBe('epoch 2');
    await clock.advance(0);
    expect(b.sessions.get(n1)?.epoch).toBe(2n);
    const later = await replicas();
    await later.own.close();
    await later.clock.advance(0);
    expect(await later.newcomer(restarted({ boot: 'b2' })).opened).toBe('epoch 2');
  });

  test('a replica that has died answers nobody: the newcomer wins after 8 s', async () => {
    const { a, newcomer, clock } = await replicas();
    await a.stop();
    const again = newcomer();
    await clock.advance(CLONE_MS + 1_000);
    expect(await again.opened).toBe('epoch 2');
  });

  test('of one process the newer session wins at once, and the older one is refused', async () => {
    const { b, newcomer } = await replicas(agentFacts({ session: 5 }));
    expect(await newcomer(agentFacts({ session: 4 })).opened).toBe('link.refused');
    expect(await newcomer(agentFacts({ session: 6 })).opened).toBe('epoch 2');
    expect(b.sessions.get(n1)?.epoch).toBe(2n);
  });

  test('a restarted agent wins at once', async () => {
    const { newcomer } = await replicas();
    expect(await newcomer(restarted()).opened).toBe('epoch 2');
  });

  test('what was asked before a replica started is not answered', async () => {
    const { a, clock, store } = await replicas();
    const value = JSON.stringify({
      ...{ nid: 'n1', registration: 'r1', asked: 's3', id: 'x' },
      newcomer: { agent: { instance: 'i9', session: 1, boot: 'b9', hardware: 'h9' }, address: atOther },
    });
    await store.commit([], [{ key: 'contest/n1', value }], { signal: AbortSignal.any([]) });
    const c = await fleetRig({ server: 's3', store, clock });
    await clock.advance(10_000);
    expect([c.sessions.counters.duplicates, a.sessions.counters.duplicates]).toEqual([0, 0]);
    expect((await store.get('contest/n1', { signal: AbortSignal.any([]) }))?.value).toBe(value);
  });

  test('two older agents that change places between replicas are found out, and nothing is delivered for a while', async () => {
    const { a, b, clock } = await replicas();
    const older = { agent: undefined };
    for (let round = 0; round < 3; round += 1) {
      await a.connect(older);
      await clock.advance(1_000);
      await b.connect({ ...older, address: atOther });
      await clock.advance(1_000);
    }
    expect(b.sessions.get(n1)?.holdMs()).toBeGreaterThan(0);
    expect(b.presence.get(n1)?.problem).toMatch(/^DUPLICATE_NODE/);
    await clock.advance(15_000);
    expect(b.sessions.get(n1)?.holdMs()).toBe(0);
  });
});
