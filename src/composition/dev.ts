import type { Container } from 'inversify';
import type { CliContext, ExitCode } from '../adapters/cli/context.js';
import { exitCodes } from '../adapters/cli/context.js';
import type { DevOptions } from '../adapters/cli/local-verbs.js';
import { WatchedManifests } from '../adapters/manifest/watched-manifests.js';
import { ManifestFollower } from '../app/resource/manifest-follower.js';
import { formatName } from '../domain/dns/name.js';
import type { AppliedResource } from '../ports/driving/resources.js';
import type { Logger } from '../ports/logger.js';
import { buildContainer } from './container.js';
import { aborted, prepareDaemon, runDaemon, untilStopped } from './daemon.js';
import { Ports, Root, Servers, Subsystems, UseCases } from './tokens.js';
import { version } from './version.js';

/** Agent and control plane in this process, until a signal, which ends it well whenever it comes. */
export async function dev(context: CliContext, options: DevOptions): Promise<ExitCode> {
  await untilStopped(context, async () => {
    const prepared = await prepareDaemon(context, options, { mode: 'dev', dataDir: '.holdfast' });
    const container = buildContainer(prepared.facts, prepared.logger);
    await runDaemon(container, context, prepared, {
      use: (config, changed) => {
        if (changed.includes('connectTimeoutMs')) container.get(Subsystems.l4).setConnectTimeout(config.connectTimeoutMs);
      },
      serve: () => serve(container, context, options, prepared.logger),
    });
  });
  return exitCodes.done;
}

async function serve(container: Container, context: CliContext, options: DevOptions, logger: Logger): Promise<void> {
  const { signal } = context;
  const follower = followerOf(container, options, logger);
  const applied = await applyAtStart(follower, context, options, logger);
  if (!signal.aborted) announce(container, context, applied);
  if (options.watch) await follower?.follow({ signal });
  else await aborted(signal);
}
function followerOf(container: Container, { apply, watch }: DevOptions, logger: Logger): ManifestFollower | undefined {
  if (apply.length === 0) return undefined;
  const source = new WatchedManifests(apply, container.get(Ports.clock));
  return new ManifestFollower(source, container.get(UseCases.resources), logger.child({ subsystem: 'manifests' }), watch);
}

/** A manifest that is wrong ends the start, unless it is watched: then it can still be mended. */
async function applyAtStart(
  follower: ManifestFollower | undefined,
  { signal }: CliContext,
  { watch }: DevOptions,
  logger: Logger,
): Promise<readonly AppliedResource[]> {
  try {
    return (await follower?.applyOnce({ signal })) ?? [];
  } catch (error) {
    if (!watch || signal.aborted) throw error;
    logger.error(error instanceof Error ? error.message : String(error));
    return [];
  }
}

function announce(container: Container, { console }: CliContext, applied: readonly AppliedResource[]): void {
  const { paths } = container.get(Root.facts);
  const metrics = container.get(Servers.metrics).address;
  const dns = container.get(Servers.dns).address;
  const lines = [
    `holdfast ${version} is ready (dev)`,
    `  data     ${paths.dataDir}`,
    `  admin    ${paths.adminSocket}`,
    `  metrics  ${metrics === '' ? 'off' : `http://${metrics}/metrics`}`,
    `  dns      ${dns === '' ? 'off' : `${dns}, zone ${formatName(container.get(Root.facts).config.dnsZone)}`}`,
    ...applied.map(
      ({ ref, action, addresses }) =>
        `  ${ref.kind.toLowerCase()}  ${ref.namespace}/${ref.name} ${action}  ${addresses.join(', ')}`,
    ),
  ];
  console.err(`${lines.join('\n')}\n`);
}
