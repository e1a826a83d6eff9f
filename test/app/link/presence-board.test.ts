import { describe, expect, test } from 'vitest';
import { FLUSH_MS } from '../../../src/app/link/presence-board.js';
import type { Nid } from '../../../src/domain/link/model.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { agentFacts, fleetRig, n1, n2, settle } from '../../support/fleet-rig.js';

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

  test('after a restart of its server it is unknown until it comes back, then offline', async () => {
    const store = new FakeControlStore();
    const { connect, stop, clock } = await fleetRig({ store });
    await connect();
    await clock.advance(FLUSH_MS);
    store.failNext();
    await stop();
    const again = await fleetRig({ store, clock });
    await clock.advance(15_001);
    expect(again.presence.get(n1)?.state).toBe('unknown');
    await clock.advance(30_000);
    expect(again.presence.get(n1)?.state).toBe('offline');
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
