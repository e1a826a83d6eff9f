import type { Container } from 'inversify';
import { FileAuditLog } from '../adapters/audit/file-audit-log.js';
import { removeAdminPair, writeAdminPair } from '../adapters/certificate/admin-pair-folder.js';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { DaemonOptions } from '../adapters/cli/local-verbs.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { sha256 } from '../adapters/log/sha256.js';
import { makeFirstAdmin } from '../app/certificate/first-admin.js';
import { type ControlPlane, openControlPlane } from './control-plane.js';
import { aborted, type PreparedDaemon, prepareDaemon, runDaemon, untilStopped } from './daemon.js';
import { buildServerContainer } from './server-container.js';
import { FleetServers, Root, Servers } from './tokens.js';
import { version } from './version.js';

/** A control plane for many machines, on a store of its own or on an etcd that it shares, until a signal. */
export async function server(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
  await untilStopped(context, async () => {
    const prepared = await prepareDaemon(context, options, { mode: 'production', dataDir: '/var/lib/holdfast' });
    const controlPlane = await openControlPlane(prepared.facts, new SystemClock({ unref: true }), prepared.logger, context);
    try {
      const isFirst = await firstAdmin(prepared, controlPlane, context);
      const container = buildServerContainer(prepared.facts, prepared.logger, controlPlane);
      await runDaemon(container, context, prepared, {
        use: () => {},
        serve: async () => {
          if (!context.signal.aborted) announce(container, context, isFirst);
          await aborted(context.signal);
        },
      });
    } finally {
      await controlPlane.close();
    }
  });
  return exitCodes.done;
}

/** Where people may operate it from elsewhere: the certificate with which somebody makes the others. */
async function firstAdmin(
  { facts: { config, paths }, logger }: PreparedDaemon,
  { store, own, serverId }: ControlPlane,
  context: CliContext,
): Promise<boolean> {
  if (config.serverAdminListen === 'off') return false;
  const clock = new SystemClock({ unref: true });
  const audit = new FileAuditLog({ file: paths.auditLog, clock, logger: logger.child({ subsystem: 'audit' }) });
  try {
    await audit.open(context);
    const isMade = await makeFirstAdmin(
      {
        ...{ store, own, clock, account: config.serverAccount, audit, server: serverId, sha256 },
        keep: (pair, options) => writeAdminPair(paths.firstAdmin, pair, options),
        discard: () => removeAdminPair(paths.firstAdmin),
      },
      context,
    );
    if (isMade) logger.info('the first certificate of an admin was made', { folder: paths.firstAdmin });
    return isMade;
  } finally {
    // The agent opens it again.
    await audit.close();
  }
}

function announce(container: Container, { console }: CliContext, isFirst: boolean): void {
  const { paths, config } = container.get(Root.facts);
  const remote = config.serverAdminListen;
  const first = isFirst ? `, first certificate ${paths.firstAdmin}` : '';
  const metrics = container.get(Servers.metrics).address;
  const lines = [
    `holdfast ${version} is ready (server)`,
    `  data      ${paths.dataDir}`,
    `  admin     ${paths.adminSocket}`,
    ...(remote === 'off' ? [] : [`  remote    ${remote.address}:${container.get(FleetServers.admin).port}${first}`]),
    `  register  ${config.serverL1Listen.address}:${container.get(FleetServers.registration).port}, root ${paths.registrationRoot}`,
    `  nodes     ${config.serverL2Listen.address}:${container.get(FleetServers.nodes).port}`,
    `  metrics   ${metrics === '' ? 'off' : `http://${metrics}/metrics`}`,
  ];
  console.err(`${lines.join('\n')}\n`);
}
