import { randomBytes, randomUUID } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { SealerKeyFile } from '../adapters/certificate/sealer-key-file.js';
import { X509AuthorityMaker } from '../adapters/certificate/x509-authority-maker.js';
import { replaceFile } from '../adapters/files/durable-file.js';
import { MeteredLog } from '../adapters/metrics/metered-log.js';
import { MeteredStore } from '../adapters/metrics/metered-store.js';
import { type Authorities, ControlPlaneIdentity } from '../app/certificate/control-plane-identity.js';
import { openSealer } from '../app/certificate/open-sealer.js';
import { OwnCertificates } from '../app/certificate/own-certificates.js';
import { fleetIdOf } from '../app/fleet/fleet-id.js';
import { ServerClocks } from '../app/link/server-clocks.js';
import type { CallOptions } from '../ports/call-options.js';
import type { Clock } from '../ports/clock.js';
import type { Backups } from '../ports/driving/backups.js';
import type { Logger } from '../ports/logger.js';
import type { Sealer } from '../ports/store/sealer.js';
import { makeBackend } from './backend.js';
import type { Facts } from './facts.js';

/** What a control plane is before it serves: its store is open, and it can sign. */
export interface ControlPlane {
  readonly store: MeteredStore;
  /** On the same backend. The agent opens and closes it. */
  readonly log: MeteredLog;
  /** Of both. */
  readonly backups: Backups;
  readonly sealer: Sealer;
  readonly authorities: Authorities;
  readonly own: OwnCertificates;
  readonly fleetId: string;
  /** Of this process, for presence and epochs. */
  readonly serverId: string;
  /** What the other servers' clocks say; told by the presence of servers, asked by the log. */
  readonly clocks: ServerClocks;
  /** Names and addresses under which nodes call it. */
  readonly hosts: readonly string[];
  /** Of the store, once the agent has stopped. */
  close(): Promise<void>;
}

/** The store is closed again when anything of it fails. */
export async function openControlPlane(facts: Facts, clock: Clock, logger: Logger, options: CallOptions): Promise<ControlPlane> {
  const { paths, config, identity } = facts;
  const machine = `${identity.nodeId}-`;
  const serverId = `${machine}${randomBytes(4).toString('hex')}`;
  const clocks = new ServerClocks(clock, machine);
  const backend = await makeBackend(facts, { clock, logger, others: () => clocks.newest() }, options);
  const { backups } = backend;
  const store = new MeteredStore(backend.store, clock);
  const log = new MeteredLog(backend.log, clock);
  const close = async () => {
    await store.close();
    backend.release();
  };
  try {
    await store.open(options);
    const sealer = await openSealer(store, new SealerKeyFile(paths.sealingKey), options);
    const maker = new X509AuthorityMaker();
    const authorities = await new ControlPlaneIdentity({ store, sealer, maker, clock, randomBytes }).open(options);
    await replaceFile(paths.registrationRoot, authorities.l1.root, { mode: 0o644, ...options });
    const own = new OwnCertificates({ maker, authorities, clock, randomBytes });
    const fleetId = await fleetIdOf(store, randomUUID, options);
    const hosts = config.serverHosts.length > 0 ? config.serverHosts : hostsOf(identity.hostname);
    return { store, log, backups, sealer, authorities, own, fleetId, serverId, clocks, hosts, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What this machine may be called. Zones of link-local addresses are nobody's name for it. */
function hostsOf(hostname: string): readonly string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
  return [...new Set([hostname, 'localhost', '127.0.0.1', '::1', ...addresses])];
}
