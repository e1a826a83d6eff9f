import type { Container } from 'inversify';
import { type CliContext, type ExitCode, exitCodes } from '../adapters/cli/context.js';
import type { DaemonOptions } from '../adapters/cli/local-verbs.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { openControlPlane } from './control-plane.js';
import { aborted, prepareDaemon, runDaemon, untilStopped } from './daemon.js';
import { buildServerContainer } from './server-container.js';
import { FleetServers, Root } from './tokens.js';
import { version } from './version.js';

/** A control plane for many machines, on a store of its own or on an etcd that it shares, until a signal. */
export async function server(context: CliContext, options: DaemonOptions): Promise<ExitCode> {
  await untilStopped(context, async () => {
    const prepared = await prepareDaemon(context, options, { mode: 'production', dataDir: '/var/lib/holdfast' });
    const controlPlane = await openControlPlane(prepared.facts, new SystemClock({ unref: true }), prepared.logger, context);
    try {
      const container = buildServerContainer(prepared.facts, prepared.logger, controlPlane);
      await runDaemon(container, context, prepared, {
        use: () => {},
        serve: async () => {
          if (!context.signal.aborted) announce(container, context);
          await aborted(context.signal);
        },
      });
    } finally {
      await controlPlane.close();
    }
  });
  return exitCodes.done;
}

function announce(container: Container, { console }: CliContext): void {
  const { paths, config } = container.get(Root.facts);
  const lines = [
    `holdfast ${version} is ready (server)`,
    `  data      ${paths.dataDir}`,
    `  admin     ${paths.adminSocket}`,
    `  register  ${config.serverL1Listen.address}:${container.get(FleetServers.registration).port}, root ${paths.registrationRoot}`,
    `  nodes     ${config.serverL2Listen.address}:${container.get(FleetServers.nodes).port}`,
  ];
  console.err(`${lines.join('\n')}\n`);
}
