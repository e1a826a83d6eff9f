import { EtcdMembershipService } from '../../src/app/etcd/etcd-membership-service.js';
import type { BalancerStatus } from '../../src/ports/driving/api-balancer.js';
import type { InstructionSnapshot } from '../../src/ports/driving/instruction-memory.js';
import type { SyncedOverlay } from '../../src/ports/driving/overlay-sync.js';
import { FakeAuditLog } from '../fakes/fake-audit-log.js';
import { FakeClock } from '../fakes/fake-clock.js';
import { FakeEtcdMembers } from '../fakes/fake-etcd-members.js';
import { FakeLogger } from '../fakes/fake-logger.js';
import { FakeResync } from '../fakes/fake-resync.js';
import { adminRig } from './admin-rig.js';
import { type RunOptions, run } from './cli-rig.js';

const nothing: InstructionSnapshot = {
  ...{ journal: undefined, waiting: 0, running: 0, unconfirmed: 0, counts: {}, instructions: [] },
};

/** A node of a fleet, its admin API on a real socket, and a CLI that asks it. */
export async function nodeCliRig() {
  const audit = new FakeAuditLog();
  await audit.open({ signal: new AbortController().signal });
  const resync = new FakeResync();
  const memory = { current: nothing, snapshot: () => memory.current };
  const overlay = {
    answer: { address: '', peers: 0, failed: [] } as SyncedOverlay,
    sync: async () => overlay.answer,
  };
  const etcd = new FakeEtcdMembers();
  const membership = new EtcdMembershipService({ members: etcd, clock: new FakeClock() });
  const apiBalancer = {
    current: { state: 'absent', port: 6_446, servers: [], reloads: 0, changes: 0 } as BalancerStatus,
    status: () => apiBalancer.current,
    refresh: async () => apiBalancer.current,
  };
  const admin = await adminRig({
    node: { resync, memory, overlay, apiBalancer, etcd: membership, audit, logger: new FakeLogger() },
  });
  await admin.server.start();
  const cli = (args: readonly string[], options?: RunOptions) => run([...args, '--data-dir', admin.dataDir], options);
  return { ...admin, audit, resync, memory, overlay, apiBalancer, etcd, cli };
}
