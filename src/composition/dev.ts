import { mkdir } from 'node:fs/promises';
import type { Container } from 'inversify';
import type { CliContext, ExitCode } from '../adapters/cli/context.js';
import { exitCodes } from '../adapters/cli/context.js';
import type { DevOptions } from '../adapters/cli/program.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { lockDataDir } from '../adapters/dataplane/data-dir-lock.js';
import { openLogger } from '../adapters/logger/pino-logger.js';
import { WatchedManifests } from '../adapters/manifest/watched-manifests.js';
import { ManifestFollower } from '../app/resource/manifest-follower.js';
import type { AppliedResource } from '../ports/driving/resources.js';
import type { Logger } from '../ports/logger.js';
import { ConfigLoader } from './config-loader.js';
import { buildContainer } from './container.js';
import { loadIdentity } from './identity.js';
import { pathsOf } from './paths.js';
import { Ports, Root, Servers, UseCases } from './tokens.js';
import { version } from './version.js';

/** Agent and control plane in this process, until a signal. */
export async function dev(context: CliContext, options: DevOptions): Promise<ExitCode> {
  const paths = pathsOf(options, context.env, '.holdfast');
  const loader = new ConfigLoader({ mode: 'dev', paths, file: options.config, env: context.env, flags: options.flags });
  const { config, warnings } = await loader.load({ signal: context.signal });
  await mkdir(paths.dataDir, { recursive: true, mode: 0o700 });
  const addon = loadAddon();
  lockDataDir(addon, paths);
  const logger = openLogger({ level: config.logLevel, colour: context.env.NO_COLOR === undefined });
  for (const warning of warnings) logger.warn(warning);
  const identity = await loadIdentity(paths, config, logger, { signal: context.signal });
  const facts = { mode: 'dev' as const, version, config, paths, identity, addon, startedAt: Date.now() };
  const container = buildContainer(facts, logger);
  const reload = () => void loader.reload((level) => logger.setLevel(level), logger, { signal: context.signal });
  process.on('SIGHUP', reload);
  try {
    return await serve(container, context, options, logger);
  } finally {
    process.off('SIGHUP', reload);
  }
}

async function serve(container: Container, context: CliContext, options: DevOptions, logger: Logger): Promise<ExitCode> {
  const agent = container.get(Root.agent);
  await agent.start();
  try {
    await agent.ready();
    if (agent.readyError() !== undefined) logger.warn(String(agent.readyError()?.message));
    const follower = followerOf(container, options, logger);
    const applied = await applyAtStart(follower, context, options, logger);
    if (!context.signal.aborted) announce(container, context, applied);
    if (options.watch) await follower?.follow({ signal: context.signal });
    else await aborted(context.signal);
  } finally {
    const failures = await agent.stop();
    for (const { name, error } of failures) logger.error(`${name} did not stop cleanly`, { error });
  }
  return exitCodes.done;
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
) {
  try {
    return (await follower?.applyOnce({ signal })) ?? [];
  } catch (error) {
    if (!watch) throw error;
    logger.error(error instanceof Error ? error.message : String(error));
    return [];
  }
}

function announce(container: Container, { console }: CliContext, applied: readonly AppliedResource[]): void {
  const { paths } = container.get(Root.facts);
  const metrics = container.get(Servers.metrics).address;
  const lines = [
    `holdfast ${version} is ready (dev)`,
    `  data     ${paths.dataDir}`,
    `  admin    ${paths.adminSocket}`,
    `  metrics  ${metrics === '' ? 'off' : `http://${metrics}/metrics`}`,
    ...applied.map(
      ({ ref, action, addresses }) =>
        `  ${ref.kind.toLowerCase()}  ${ref.namespace}/${ref.name} ${action}  ${addresses.join(', ')}`,
    ),
  ];
  console.err(`${lines.join('\n')}\n`);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
