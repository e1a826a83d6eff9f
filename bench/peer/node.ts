import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { YamlConfigFile } from '../../dist/adapters/config/yaml-config-file.js';
import { loadAddon } from '../../dist/adapters/dataplane/addon.js';
import { lockDataDir } from '../../dist/adapters/dataplane/data-dir-lock.js';
import { FileIdentityStore } from '../../dist/adapters/identity/file-identity-store.js';
import { openLogger } from '../../dist/adapters/logger/pino-logger.js';
import { WatchedManifests } from '../../dist/adapters/manifest/watched-manifests.js';
import { ensureIdentity } from '../../dist/app/agent/ensure-identity.js';
import { ManifestFollower } from '../../dist/app/resource/manifest-follower.js';
import { ConfigLoader } from '../../dist/composition/config-loader.js';
import { buildContainer } from '../../dist/composition/container.js';
import { pathsOf } from '../../dist/composition/paths.js';
import { Ports, Root, Subsystems, UseCases } from '../../dist/composition/tokens.js';
import { version } from '../../dist/composition/version.js';
import { configOf, type DataPath } from './manifest.ts';

export interface NodeOrder {
  readonly folder: string;
  readonly manifest: string;
  /** What listeners are to be bound to. */
  readonly address: string;
  readonly tuning: { readonly threads?: string; readonly busyPoll?: string; readonly path?: DataPath };
  readonly signal: AbortSignal;
}

/**
 * The product's own container in production mode, which takes VIP ranges outside loopback as `holdfast dev` does not: configuration
 * file, manifest, log, compiler and data plane are those of every node.
 * @throws Error when a listener cannot be bound
 */
export async function startNode({ folder, manifest, address, tuning, signal }: NodeOrder): Promise<AsyncDisposable> {
  const dataDir = join(folder, 'data');
  await mkdir(dataDir, { mode: 0o700 });
  const file = join(folder, 'holdfast.yaml');
  await writeFile(file, configOf(address, tuning));
  const paths = pathsOf({ dataDir }, {}, dataDir);
  const { config } = await new ConfigLoader({
    mode: 'production',
    source: new YamlConfigFile(file, { required: true }),
    env: {},
    flags: {},
  }).load({ signal });
  const addon = loadAddon();
  lockDataDir(addon, paths);
  const logger = openLogger({ level: config.logLevel, colour: false });
  const identity = await ensureIdentity(
    new FileIdentityStore(paths.identity),
    { explicitName: config.nodeName, hostname: hostname(), labels: config.labels, randomBytes: randomBytes(8) },
    { signal },
  );
  const facts = { mode: 'production' as const, version, config, paths, identity, addon, startedAt: Date.now() };
  const container = buildContainer(facts, logger);
  const agent = container.get(Root.agent);
  const stop = async () => {
    await agent.stop();
    // Rules outlive their agent, and would be in the way of the next peer.
    if (container.isBound(Ports.packetFilter))
      await container.get(Ports.packetFilter).remove({ signal: new AbortController().signal });
  };
  try {
    await agent.start();
    await agent.ready();
    const source = new WatchedManifests([manifest], container.get(Ports.clock));
    const [applied] = await new ManifestFollower(source, container.get(UseCases.resources), logger, false).applyOnce({ signal });
    if (applied === undefined) throw new Error(`${manifest} holds nothing`);
    const listeners = container.get(Ports.listeners);
    await listeners.settled(container.get(Subsystems.logConsumer).state.revision, { signal });
    const failed = [...listeners.failed()].map(([id, { reason }]) => `${id}: ${reason}`);
    if (failed.length > 0) throw new Error(`cannot listen: ${failed.join(', ')}`);
    return { [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
