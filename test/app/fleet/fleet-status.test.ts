import { expect, test } from 'vitest';
import { fleetStatus } from '../../../src/app/fleet/fleet-status.js';
import { nid } from '../../../src/domain/link/model.js';
import type { FleetStatus } from '../../../src/ports/driving/operations.js';
import { fleetRig, n1, n2, tagOf } from '../../support/fleet-rig.js';

const own: Pick<FleetStatus, 'followers' | 'stores' | 'certificates'> = {
  followers: 2,
  stores: [{ name: 'log', backend: 'etcd', failingSince: undefined, answeredInMs: 1 }],
  certificates: [{ name: 'nodes', expiresAt: 5 }],
};

test('how many nodes there are and how they are; one that was never seen is offline, but not at once', async () => {
  const { registrations, presence, book, sessions, connect, send, clock } = await fleetRig();
  registrations.register(n1);
  registrations.register(n2);
  const parts = { ...own, server: 's1', registered: { nodeIds: () => [n1, n2, nid('n3')] }, presence, book, sessions };
  const status = () => fleetStatus(parts);
  expect(status()).toMatchObject({ nodes: 3, unknown: 3 });
  await clock.advance(30_001);
  const replicas = [{ id: 's1', silentMs: 0 }];
  const counts = { nodes: 3, online: 0, offline: 3, unknown: 0, unanswered: 0, links: 0 };
  expect(status()).toEqual({ ...own, server: 's1', ...counts, replicas });
  const { beat } = await connect();
  await beat('b', {});
  await send({ nid: n2, tag: tagOf('a') });
  expect(status()).toMatchObject({ online: 1, offline: 2, unanswered: 1, links: 1 });
  await clock.advance(60_000);
  expect(status()).toMatchObject({ online: 0, offline: 3 });
});

test('one whose server is gone, and whom no other has yet, is unknown', () => {
  const presence = { stateOf: () => 'unknown' as const, servers: () => [] };
  const others = { presence, book: { openCount: () => 0 }, sessions: { size: 0 } };
  const parts = { ...own, server: 's1', registered: { nodeIds: () => [n1] }, ...others };
  expect(fleetStatus(parts)).toMatchObject({ nodes: 1, unknown: 1 });
});
