import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Container } from 'inversify';
import type { CliContext, ExitCode } from '../adapters/cli/context.js';
import { exitCodes } from '../adapters/cli/context.js';
import type { DevOptions } from '../adapters/cli/program.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { lockDataDir } from '../adapters/dataplane/data-dir-lock.js';
import { ensureFolder } from '../adapters/files/durable-file.js';
import { FileIdentityStore } from '../adapters/identity/file-identity-store.js';
import { openLogger } from '../adapters/logger/pino-logger.js';
import { WatchedManifests } from '../adapters/manifest/watched-manifests.js';
import { ensureIdentity } from '../app/agent/ensure-identity.js';
import { ManifestFollower } from '../app/resource/manifest-follower.js';
import type { Config, Setting } from '../domain/config/model.js';
import { identityDrift } from '../domain/identity/plan.js';
import type { Paths } from '../domain/kernel/paths.js';
import type { AppliedResource } from '../ports/driving/resources.js';
import type { Logger } from '../ports/logger.js';
import { ConfigLoader } from './config-loader.js';
import { buildContainer } from './container.js';
import { pathsOf } from './paths.js';
import { Ports, Root, Servers, Subsystems, UseCases } from './tokens.js';
import { version } from './version.js';

/** Agent and control plane in this process, until a signal, which ends it well whenever it comes. */
export async function dev(context: CliContext, options: DevOptions): Promise<ExitCode> {
  try {
    await runNode(context, options);
  } catch (error) {
    if (!context.signal.aborted) throw error;
  }
  return exitCodes.done;
}

async function runNode(context: CliContext, options: DevOptions): Promise<void> {
  const { signal, env } = context;
  const paths = pathsOf(options, env, '.holdfast');
  const loader = new ConfigLoader({ mode: 'dev', paths, file: options.config, env, flags: options.flags });
  const { config, warnings } = await loader.load({ signal });
  await ensureFolder(paths.dataDir);
  const addon = loadAddon();
  lockDataDir(addon, paths);
  const logger = openLogger({ level: config.logLevel, colour: env.NO_COLOR === undefined });
  for (const warning of warnings) logger.warn(warning);
  const identity = await identityOf(paths, config, context);
  for (const warning of identityDrift(identity, config)) logger.warn(warning);
  const facts = { mode: 'dev' as const, version, config, paths, identity, addon, startedAt: Date.now() };
  const container = buildContainer(facts, logger);
  const use = (wanted: Config, changed: readonly Setting[]) => useLive(container, wanted, changed, logger);
  const reload = () => void loader.reload(use, logger, { signal });
  process.on('SIGHUP', reload);
  try {
    await serve(container, context, options, logger);
  } finally {
    process.off('SIGHUP', reload);
  }
}

function identityOf(paths: Paths, { nodeName, labels }: Config, { signal }: CliContext) {
  const facts = { explicitName: nodeName, hostname: hostname(), labels, randomBytes: randomBytes(8) };
  return ensureIdentity(new FileIdentityStore(paths.identity), facts, { signal });
}

/** What is marked `live` in the configuration's model takes effect here. */
function useLive(container: Container, config: Config, changed: readonly Setting[], logger: Logger): void {
  if (changed.includes('logLevel')) logger.setLevel(config.logLevel);
  if (changed.includes('connectTimeoutMs')) container.get(Subsystems.l4).setConnectTimeout(config.connectTimeoutMs);
}

async function serve(container: Container, context: CliContext, options: DevOptions, logger: Logger): Promise<void> {
  const { signal } = context;
  const agent = container.get(Root.agent);
  // Also while it starts, or waits for what is not ready: whoever stops it does not wait for that.
  const stop = () => void agent.stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await agent.start();
    await agent.ready();
    const follower = followerOf(container, options, logger);
    const applied = await applyAtStart(follower, context, options, logger);
    if (!signal.aborted) announce(container, context, applied);
    if (options.watch) await follower?.follow({ signal });
    else await aborted(signal);
  } finally {
    signal.removeEventListener('abort', stop);
    const failures = await agent.stop();
    for (const { name, error } of failures) logger.error(`${name} did not stop cleanly`, { error });
  }
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
