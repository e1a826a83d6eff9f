import { describe, expect, test } from 'vitest';
import { FLUSH_MS, PresenceBoard } from '../../../src/app/link/presence-board.js';
import { ServerClocks } from '../../../src/app/link/server-clocks.js';
import { type Nid, nid } from '../../../src/domain/link/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { agentFacts, fleetRig, n1, n2, options, settle } from '../../support/fleet-rig.js';

const n3 = nid('n3');

describe('E11, E12: presence', () => {
  test('a node is online from its first stream, offline after 30 s of silence, and online with the next beat', async () => {
    const { connect, presence, clock } = await fleetRig();
    const { beat } = await connect();
    await beat('b1', { status: 'ready', version: '1.2.3' });
    expect(presence.get(n1)).toMatchObject({ state: 'online', status: 'ready', version: '1.2.3', connected: true });
    await clock.advance(30_000);
    expect(presence.get(n1)?.state).toBe('online');
    await clock.advance(1);
    expect(presence.get(n1)?.state).toBe('offline');
    await beat('b2');
    expect(presence.get(n1)).toMatchObject({ state: 'online', lastSeen: clock.now() });
  });

  test('a control plane of Kubernetes is known with its account and address, also while it cannot read its roles', async () => {
    const { connect, presence } = await fleetRig();
    const { beat } = await connect();
    await beat('b1', { isCp: true, externalIpAddress: '10.0.0.1' });
    expect(presence.get(n1)?.controlPlane).toMatchObject({ aid: 'acme', address: '10.0.0.1' });
    await beat('b2', { isCp: false, rolesKnown: false, externalIpAddress: '10.0.0.1' });
    expect(presence.get(n1)?.controlPlane?.address).toBe('10.0.0.1');
    await beat('b3', { isCp: true, externalIpAddress: '10.0.0.1:6443\n' });
    expect(presence.get(n1)?.controlPlane?.address).not.toContain('6443');
    await beat('b4', { isCp: false, externalIpAddress: '10.0.0.1' });
    expect(presence.get(n1)?.controlPlane).toBeUndefined();
  });

  test('one that has gone is offline 30 s after its last word, not before', async () => {
    const { connect, presence, clock } = await fleetRig();
    await (await connect()).close();
    expect(presence.get(n1)).toMatchObject({ state: 'online', connected: false });
    await clock.advance(30_001);
    expect(presence.get(n1)?.state).toBe('offline');
    expect(presence.get(n2)).toBeUndefined();
  });

  test('other replicas know it, as unknown when its server has died, and offline when nobody claims it for 30 s', async () => {
    const { connect, store, clock, stop } = await fleetRig();
    await connect();
    const other = await fleetRig({ server: 's2', store, clock });
    await clock.advance(FLUSH_MS);
    expect(other.presence.get(n1)).toMatchObject({ state: 'online', server: 's1' });
    await clock.advance(60_000);
    expect(other.presence.get(n1)?.state).toBe('online');
    store.failNext();
    await stop();
    await clock.advance(15_001);
    expect(other.presence.nodes().map(({ nid, state }) => `${nid} ${state}`)).toEqual(['n1 unknown']);
    await clock.advance(30_000);
    expect(other.presence.get(n1)?.state).toBe('offline');
    await other.connect({ agent: agentFacts({ instance: 'i2' }) });
    expect(other.presence.get(n1)).toMatchObject({ state: 'online', server: 's2' });
  });

  test.each(['killed', 'stopped'])(
    'a server that was %s and is there again: unknown until heard of, then offline',
    async (how) => {
      const store = new FakeControlStore();
      const { connect, stop, clock } = await fleetRig({ store });
      await connect();
      await connect({ nid: n2 });
      await clock.advance(FLUSH_MS);
      if (how === 'killed') store.failNext();
      await stop();
      await clock.advance(3_600_000);
      const { presence, connect: comeBack } = await fleetRig({ server: 's2', store, clock });
      expect([n1, n2, n3].map((nid) => presence.stateOf(nid))).toEqual(['unknown', 'unknown', 'unknown']);
      await comeBack({ agent: agentFacts({ instance: 'i2' }) });
      expect(presence.stateOf(n1)).toBe('online');
      await clock.advance(30_000);
      expect(presence.stateOf(n2)).toBe('unknown');
      await clock.advance(1);
      expect([presence.stateOf(n2), presence.stateOf(n3)]).toEqual(['offline', 'offline']);
    },
  );

  test('while the store cannot be read no time passes for those that are waited for', async () => {
    const store = new FakeControlStore();
    const clock = new FakeClock();
    const presence = new PresenceBoard({
      store,
      clock,
      logger: new FakeLogger(),
      server: 's1',
      clocks: new ServerClocks(clock, 's1'),
    });
    store.setUnavailable(true);
    presence.start();
    await clock.advance(600_000);
    expect(presence.stateOf(n1)).toBe('unknown');
    store.setUnavailable(false);
    await clock.advance(10_000);
    expect(presence.stateOf(n1)).toBe('unknown');
    await clock.advance(30_001);
    expect(presence.stateOf(n1)).toBe('offline');
    await presence.stop();
  });

  test('a new replica takes the word of one that lives, once it has heard it', async () => {
    const { connect, store, clock } = await fleetRig();
    const { close } = await connect({ nid: n2 });
    await connect();
    await close();
    await clock.advance(FLUSH_MS);
    const { presence } = await fleetRig({ server: 's2', store, clock });
    expect([presence.get(n1)?.state, presence.get(n2)?.state]).toEqual(['unknown', 'unknown']);
    await clock.advance(FLUSH_MS);
    expect([presence.get(n1)?.state, presence.get(n2)?.state]).toEqual(['online', 'unknown']);
    await clock.advance(30_000);
    expect([presence.get(n1)?.state, presence.get(n2)?.state]).toEqual(['online', 'offline']);
  });

  test('a watch that began anew tells everything again, which is no news', async () => {
    const { connect, store, clock } = await fleetRig();
    const { presence } = await fleetRig({ server: 's2', store, clock });
    await (await connect()).close();
    await clock.advance(FLUSH_MS);
    await clock.advance(60_000);
    expect(presence.get(n1)?.state).toBe('offline');
    store.setUnavailable(true);
    store.setUnavailable(false);
    await clock.advance(1_000);
    expect(presence.get(n1)?.state).toBe('offline');
  });

  test('a server that stops takes its record away; that of one that was killed goes when it was silent for a minute', async () => {
    const store = new FakeControlStore();
    const one = await fleetRig({ store });
    const { clock } = one;
    const two = await fleetRig({ server: 's2', store, clock });
    const records = () => store.dump('presence/server/').match(/s\d/g) ?? [];
    await clock.advance(FLUSH_MS);
    expect(records()).toEqual(['s1', 's2']);
    expect(one.presence.servers()).toEqual([
      { id: 's1', silentMs: 0 },
      { id: 's2', silentMs: 0 },
    ]);
    await two.stop();
    expect(records()).toEqual(['s1']);
    const three = await fleetRig({ server: 's3', store, clock });
    await clock.advance(FLUSH_MS);
    store.failNext();
    await three.stop();
    expect(records()).toEqual(['s1', 's3']);
    await clock.advance(60_000);
    expect(records()).toEqual(['s1', 's3']);
    expect(one.presence.servers()).toMatchObject([{ id: 's1' }, { id: 's3' }]);
    await clock.advance(FLUSH_MS);
    expect(records()).toEqual(['s1']);
    expect(one.presence.servers()).toEqual([{ id: 's1', silentMs: 0 }]);
  });

  test('records of before this server began go too, some at a time', async () => {
    const store = new FakeControlStore();
    for (let i = 0; i < 50; i += 1) await store.commit([], [{ key: `presence/server/old-${i}`, value: '{"at":1}' }], options);
    const { clock } = await fleetRig({ store });
    const count = () => (store.dump('presence/server/').match(/old-/g) ?? []).length;
    await clock.advance(60_000);
    expect(count()).toBe(50);
    for (let i = 0; i < 3; i += 1) await clock.advance(FLUSH_MS);
    expect(store.dump('presence/server/')).toMatch(/^presence\/server\/s1 = \S+ @ \d+$/);
  });

  test('one that speaks in the moment in which it is given up keeps its record', async () => {
    const store = new FakeControlStore();
    await store.commit([], [{ key: 'presence/server/s9', value: '{"at":1}' }], options);
    const { clock } = await fleetRig({ store });
    await clock.advance(60_000);
    const speak = store.commit([], [{ key: 'presence/server/s9', value: '{"at":2}' }], options);
    await Promise.all([speak, clock.advance(FLUSH_MS)]);
    expect(store.dump('presence/server/')).toContain('s9');
  });

  test('is written for many at once, and not for every beat', async () => {
    const { connect, store, clock } = await fleetRig();
    const nodes = [];
    for (let i = 0; i < 150; i += 1) nodes.push(await connect({ nid: `n${i}` as Nid }));
    const before = store.commits;
    await clock.advance(FLUSH_MS);
    expect(store.commits - before).toBe(2);
    for (let second = 5; second < 30; second += 5) {
      for (const { beat } of nodes.slice(0, 5)) await beat();
      await clock.advance(FLUSH_MS);
    }
    // One sign of life of the server each time.
    expect(store.commits - before).toBe(7);
  });

  test('what could not be written is written later', async () => {
    const { connect, store, clock, logger } = await fleetRig();
    await connect();
    store.failNext();
    await clock.advance(FLUSH_MS);
    expect(logger.dump('warn')).toContain('presence of nodes could not be written');
    expect(store.dump('presence/node/')).toBe('');
    await clock.advance(FLUSH_MS);
    expect(store.dump('presence/node/')).toContain('"connected":true');
  });

  test('what a stop finds unwritten is written', async () => {
    const { connect, store, stop } = await fleetRig();
    await connect();
    await stop();
    await settle();
    expect(store.dump('presence/node/')).toContain('"nid":"n1"');
  });
});
