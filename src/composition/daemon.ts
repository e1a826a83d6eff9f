import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Container } from 'inversify';
import type { Predecessor } from '../adapters/agent/predecessor.js';
import type { CliContext } from '../adapters/cli/context.js';
import type { DaemonOptions } from '../adapters/cli/local-verbs.js';
import { FirstConfigFile } from '../adapters/config/first-config-file.js';
import { YamlConfigFile } from '../adapters/config/yaml-config-file.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { FileIdentityStore } from '../adapters/identity/file-identity-store.js';
import { openLogger } from '../adapters/logger/pino-logger.js';
import { ensureIdentity } from '../app/agent/ensure-identity.js';
import type { Config, Mode, Setting } from '../domain/config/model.js';
import { identityDrift } from '../domain/identity/plan.js';
import type { Paths } from '../domain/kernel/paths.js';
import type { ConfigSource } from '../ports/config/config-source.js';
import type { Logger } from '../ports/logger.js';
import { ConfigLoader } from './config-loader.js';
import { checkDataDir, holdDataDir, makeDataDir } from './data-dir.js';
import type { Facts } from './facts.js';
import { pathsOf } from './paths.js';
import { Root } from './tokens.js';
import { version } from './version.js';

/** What every daemon has before anything of it runs: it holds its data directory and knows who it is. */
export interface PreparedDaemon {
  readonly facts: Facts;
  readonly logger: Logger;
  readonly loader: ConfigLoader;
  /** Descriptors of the files that it holds. */
  readonly locks: readonly number[];
}

/** Nothing is made before the configuration is known to be good. */
export async function prepareDaemon(
  context: CliContext,
  options: DaemonOptions,
  {
    mode,
    dataDir,
    predecessor,
  }: { readonly mode: Mode; readonly dataDir: string; readonly predecessor?: Predecessor | undefined },
): Promise<PreparedDaemon> {
  const { signal, env } = context;
  const paths = pathsOf(options, env, dataDir);
  await checkDataDir(paths);
  const source = configSource(mode, paths, options.config, env);
  const loader = new ConfigLoader({ mode, source, env, flags: options.flags });
  const { config, warnings } = await loader.load({ signal });
  await makeDataDir(paths);
  const addon = loadAddon();
  const { locks, sockets } = predecessor?.take(addon) ?? { locks: [holdDataDir(addon, paths)], sockets: [] };
  const logger = openLogger({ level: config.logLevel, colour: env.NO_COLOR === undefined });
  for (const warning of warnings) logger.warn(warning);
  const identity = await identityOf(paths, config, context);
  for (const warning of identityDrift(identity, config)) logger.warn(warning);
  const facts: Facts = { mode, version, config, paths, identity, addon, inherited: sockets, startedAt: Date.now() };
  return { facts, logger, loader, locks };
}

/**
 * The file that a flag names, else HOLDFAST_CONFIG; else that of the data directory, else the machine's, which both may be missing. The
 * dev mode has nothing to do with the machine.
 */
export function configSource(
  mode: Mode,
  { config, machineConfig }: Paths,
  flag: string | undefined,
  env: NodeJS.ProcessEnv,
): ConfigSource {
  const named = flag ?? (env.HOLDFAST_CONFIG || undefined);
  if (named !== undefined) return new YamlConfigFile(resolve(named), { required: true });
  const sources = (mode === 'dev' ? [config] : [config, machineConfig]).map(
    (path) => new YamlConfigFile(path, { required: false }),
  );
  return new FirstConfigFile(sources);
}

function identityOf(paths: Paths, { nodeName, labels }: Config, { signal }: CliContext) {
  const facts = { explicitName: nodeName, hostname: hostname(), labels, randomBytes: randomBytes(8) };
  return ensureIdentity(new FileIdentityStore(paths.identity), facts, { signal });
}

export interface Running<Outcome> {
  /** What is marked `live` in the configuration's model takes effect here. */
  readonly use: (config: Config, changed: readonly Setting[]) => void;
  /** Everything serves; ends when it is to stop. */
  readonly serve: () => Promise<Outcome>;
}

/** Starts the container's agent and stops it at the signal's end, whenever that comes. SIGHUP reads the configuration again. */
export async function runDaemon<Outcome>(
  container: Container,
  { signal }: CliContext,
  { logger, loader }: Pick<PreparedDaemon, 'logger' | 'loader'>,
  { use, serve }: Running<Outcome>,
): Promise<Outcome> {
  const agent = container.get(Root.agent);
  const useLive = (config: Config, changed: readonly Setting[]) => {
    if (changed.includes('logLevel')) logger.setLevel(config.logLevel);
    use(config, changed);
  };
  const reload = () => void loader.reload(useLive, logger, { signal });
  process.on('SIGHUP', reload);
  // Also while it starts, or waits for what is not ready: whoever stops it does not wait for that.
  const stop = () => void agent.stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await agent.start();
    await agent.ready();
    return await serve();
  } finally {
    process.off('SIGHUP', reload);
    signal.removeEventListener('abort', stop);
    const failures = await agent.stop();
    for (const { name, error } of failures) logger.error(`${name} did not stop cleanly`, { error });
  }
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A daemon that is told to stop ends well, whatever it was doing; SIGHUP and SIGUSR2, whose default is to end it, never do, from here on. */
export async function untilStopped({ signal }: CliContext, run: () => Promise<void>): Promise<void> {
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {});
  try {
    await run();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
