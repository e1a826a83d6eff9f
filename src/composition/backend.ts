import { ControlStoreCopy, EtcdLogCopy } from '../adapters/backup/etcd-copies.js';
import { StoreBackups } from '../adapters/backup/store-backups.js';
import { EtcdClient } from '../adapters/etcd/etcd-client.js';
import type { EtcdTls } from '../adapters/etcd/etcd-endpoint.js';
import { readTextFile } from '../adapters/files/text-file.js';
import { EtcdOrderedLog } from '../adapters/log/etcd-ordered-log.js';
import type { EtcdPlace } from '../adapters/log/etcd-whole-log.js';
import { EtcdControlStore } from '../adapters/store/etcd-control-store.js';
import { SqliteControlStore } from '../adapters/store/sqlite-control-store.js';
import { type Config, type Setting, settings } from '../domain/config/model.js';
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
  const kept = { sealingKey: paths.sealingKey, folder: paths.backup, version, clock };
  if (config.serverEtcd.length === 0) {
    const store = new SqliteControlStore({ file: paths.controlDb, clock });
    const log = embeddedLog(facts, clock, logger, others);
    return { store, log, backups: new StoreBackups({ log, store, ...kept }), release: () => {} };
  }
  const { client, prefix } = await etcdOf(config, options);
  const store = new EtcdControlStore({ client, prefix: `${prefix}store/`, clock });
  const log = new EtcdOrderedLog({ client, prefix: `${prefix}log/`, witness: paths.etcdWitness, clock, others });
  const backups = new StoreBackups({
    ...kept,
    log: new EtcdLogCopy(client, `${prefix}log/`),
    store: new ControlStoreCopy(store, clock),
  });
  return { store, log, backups, release: () => client.close() };
}

/** Where the control planes that share an etcd keep everything; the client is to be closed. @throws AgentError `config.invalid` */
export async function etcdOf(config: Config, options: CallOptions): Promise<EtcdPlace> {
  const client = new EtcdClient({ endpoints: config.serverEtcd, tls: await tlsOf(config, options) });
  return { client, prefix: `/holdfast/${config.serverEtcdCluster}/` };
}

async function tlsOf(config: Config, options: CallOptions): Promise<EtcdTls> {
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
