import type { FleetParts } from '../../src/adapters/admin/fleet-handlers.js';
import { aid } from '../../src/domain/link/model.js';
import { FakeAdminCertificates } from '../fakes/fake-admin-certificates.js';
import { FakeAuditLog } from '../fakes/fake-audit-log.js';
import { FakeBackups } from '../fakes/fake-backups.js';
import { FakeTokens } from '../fakes/fake-tokens.js';
import { adminRig } from './admin-rig.js';
import { type RunOptions, run } from './cli-rig.js';
import { fleetRig, n1, options } from './fleet-rig.js';

/** A control plane with node `n1`, its admin API on a real socket, and a CLI that asks it. */
export async function fleetCliRig(parts: Partial<FleetParts> = {}) {
  const fleet = await fleetRig();
  fleet.registrations.register(n1);
  const audit = new FakeAuditLog();
  await audit.open(options);
  const tokens = new FakeTokens(() => fleet.clock.now());
  const certificates = new FakeAdminCertificates(() => fleet.clock.now());
  const { instructions, nodes, relay, logger } = fleet;
  const fleetParts = {
    ...{
      instructions,
      nodes,
      tokens,
      certificates,
      sessions: relay,
      vips: fleet.vips,
      backups: new FakeBackups(),
      audit,
      logger,
      account: aid('acme'),
    },
    ...parts,
  };
  const admin = await adminRig({ fleet: fleetParts });
  await admin.server.start();
  const cli = (args: readonly string[], runOptions?: RunOptions) => run([...args, '--data-dir', admin.dataDir], runOptions);
  /** Until `condition` holds: calls go through a real socket. */
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return { ...fleet, audit, tokens, certificates, admin, fleetParts, client: admin.client, cli, until };
}
