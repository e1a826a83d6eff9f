import { EtcdBackups } from '../adapters/backup/etcd-backups.js';
import { StoreBackups } from '../adapters/backup/store-backups.js';
import { EtcdClient } from '../adapters/etcd/etcd-client.js';
import type { EtcdTls } from '../adapters/etcd/etcd-endpoint.js';
import { readTextFile } from '../adapters/files/text-file.js';
import { EtcdOrderedLog } from '../adapters/log/etcd-ordered-log.js';
import { EtcdControlStore } from '../adapters/store/etcd-control-store.js';
import { SqliteControlStore } from '../adapters/store/sqlite-control-store.js';
import { type Setting, settings } from '../domain/config/model.js';
import { AgentError } from '../domain/kernel/errors.js';
import type { CallOptions } from '../ports/call-options.js';
import type { Clock } from '../ports/clock.js';
import type { Backups } from '../ports/driving/backups.js';
import type { OwnedLog } from '../ports/log/ordered-log.js';
import type { Logger } from '../ports/logger.js';
import type { OwnedControlStore } from '../ports/store/control-store.js';
import type { Facts } from './facts.js';
import { embeddedLog } from './modules/log.js';

const LARGEST_PEM = 1024 * 1024;

/** Where a control plane keeps everything. Nothing is open yet. */
export interface Backend {
  readonly store: OwnedControlStore;
  readonly log: OwnedLog;
  readonly backups: Backups;
  /** After both are closed. */
  release(): void;
}

export interface BackendParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The newest clock of the other servers that live. */
  readonly others: () => number | undefined;
}

/** The etcd that the configuration names, or files of this server alone. @throws AgentError `config.invalid` */
export async function makeBackend(facts: Facts, { clock, logger, others }: BackendParts, options: CallOptions): Promise<Backend> {
  const { paths, config, version } = facts;
  if (config.serverEtcd.length === 0) {
    const store = new SqliteControlStore({ file: paths.controlDb, clock });
    const log = embeddedLog(facts, clock, logger, others);
    const backups = new StoreBackups({ log, store, sealingKey: paths.sealingKey, folder: paths.backup, version, clock });
    return { store, log, backups, release: () => {} };
  }
  const { client, storePrefix, logPrefix } = await etcdOf(facts, options);
  const store = new EtcdControlStore({ client, prefix: storePrefix, clock });
  const log = new EtcdOrderedLog({ client, prefix: logPrefix, witness: paths.etcdWitness, clock, others });
  return { store, log, backups: new EtcdBackups(), release: () => client.close() };
}

/** The etcd of the configuration, and where in it everything stands. @throws AgentError `config.invalid` */
export async function etcdOf(facts: Facts, options: CallOptions) {
  const { serverEtcd, serverEtcdCluster } = facts.config;
  const client = new EtcdClient({ endpoints: serverEtcd, tls: await tlsOf(facts, options) });
  const prefix = `/holdfast/${serverEtcdCluster}`;
  return { client, storePrefix: `${prefix}/store/`, logPrefix: `${prefix}/log/` };
}

async function tlsOf({ config }: Facts, options: CallOptions): Promise<EtcdTls> {
  const read = async (setting: 'serverEtcdCa' | 'serverEtcdCert' | 'serverEtcdKey') => {
    const file = config[setting];
    if (file === undefined) return undefined;
    const found = await readTextFile(file, LARGEST_PEM, options);
    if (found.found === 'text') return found.text;
    throw invalid(setting, found.found === 'nothing' ? `${file} is not there` : `${file} ${found.problem}`);
  };
  const [ca, certificate, key] = [await read('serverEtcdCa'), await read('serverEtcdCert'), await read('serverEtcdKey')];
  if (certificate !== undefined && key === undefined) throw invalid('serverEtcdKey', 'the certificate needs its key');
  if (key !== undefined && certificate === undefined) throw invalid('serverEtcdCert', 'the key needs its certificate');
  return { ca, certificate, key };
}

function invalid(setting: Setting, problem: string): AgentError {
  return new AgentError('config.invalid', { problem: `${settings[setting].path}: ${problem}` });
}
