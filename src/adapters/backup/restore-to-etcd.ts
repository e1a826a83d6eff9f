import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SEAL_CHECK_KEY } from '../../domain/certificate/records.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Paths } from '../../domain/kernel/paths.js';
import { serverPrefix } from '../../domain/link/presence.js';
import { logId } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlStore, FormerStore } from '../../ports/store/control-store.js';
import { syncFolder } from '../files/durable-file.js';
import { type EtcdPlace, EtcdReplacement, type Found } from '../log/etcd-whole-log.js';
import { readWholeLog } from '../log/sqlite-whole-log.js';
import { EtcdControlStore } from '../store/etcd-control-store.js';
import type { CheckedArchive } from './backup-archive.js';
import { ControlStoreCopy, EtcdLogCopy, inOrder } from './etcd-copies.js';
import { putKey, type RestoreBackupOptions, type RestoredBackup, setAside, unpack, withStore } from './restore-backup.js';
import { StoreBackups } from './store-backups.js';

/** A server says every 5 s that it lives: two of those, and some time for a slow etcd. */
const SIGN_OF_LIFE_MS = 12_000;

export interface RestoreToEtcdOptions<T> extends Omit<RestoreBackupOptions<T>, 'paths'> {
  readonly paths: Pick<Paths, 'backup' | 'dataDir' | 'controlDb' | 'etcdWitness' | 'logDb' | 'sealingKey'>;
  readonly place: EtcdPlace;
  /** Replaces what is there, which is archived in the data directory first. */
  readonly force: boolean;
  readonly version: string;
}

/**
 * Puts log and state of an archive into an etcd, and its key into the data directory of the server that is to be started. For a command,
 * while no server runs. After a crash in the middle no server serves from it; restoring again finishes it.
 * @throws AgentError `backup.store_not_empty`, `backup.servers_running`, `backup.not_made`, `store.*`, `log.*`: nothing was changed;
 * `backup.overtaken`
 */
export async function restoreToEtcd<T>(call: RestoreToEtcdOptions<T>, options: CallOptions): Promise<RestoredBackup<T>> {
  const { archive, paths, place, clock, settle } = call;
  const replacement = new EtcdReplacement(place);
  const found = await replacement.look(options);
  if (found.kind === 'log' && !call.force) throw notEmpty(found, place, archive);
  const unpacked = await unpack(archive, paths, options);
  try {
    const former = found.kind === 'nothing' ? undefined : formerOf(found, call);
    const { settled, rows } = await withStore(
      unpacked.control,
      clock,
      async (store) => ({
        settled: await settle(store, unpacked.keyFile, former),
        rows: inOrder(await store.list('', options)),
      }),
      options,
    );
    const log = { ...readWholeLog(unpacked.log), logId: logId(randomUUID()) };
    const now = clock.now();
    const archived = found.kind === 'log' ? [await archiveFormer(call, now, options)] : [];
    await replacement.write(found, log, [...rows.filter(isBeginning), ...rows.filter((row) => !isBeginning(row))], options);
    const aside = [...archived, ...(await putKey(unpacked, paths, now)), ...(await setAside(paths.etcdWitness, now))];
    return { revision: log.last.revision, logId: log.logId, settled, aside };
  } finally {
    await unpacked.remove();
  }
}

/** Of a restore that was cut off only a part is there: what it replaced is in its archive. */
function formerOf<T>({ kind }: Found, { place: { client, prefix }, clock }: RestoreToEtcdOptions<T>): FormerStore {
  const problem = 'a restore into this etcd was cut off, which had set aside what was there';
  const store = new EtcdControlStore({ client, prefix: `${prefix}store/`, clock });
  const failed = () => Promise.reject(new AgentError('store.unavailable', { problem }));
  const list: FormerStore['list'] = async (keys, options) => {
    await store.open(options);
    try {
      return await store.list(keys, options);
    } finally {
      await store.close();
    }
  };
  return { list: kind === 'log' ? list : failed };
}

/** What a server makes that finds none: it must not come before the archive's. */
function isBeginning({ key }: { readonly key: string }): boolean {
  return key === SEAL_CHECK_KEY || key.startsWith('ca/') || key.startsWith('fleet/');
}

function notEmpty(
  { head }: Extract<Found, { readonly kind: 'log' }>,
  { prefix }: EtcdPlace,
  { manifest }: CheckedArchive,
): AgentError {
  const there = head === undefined ? 'keys, but no log' : `log ${head.logId} up to revision ${head.last.revision}`;
  const problem = `etcd holds ${there} under ${prefix}; the archive holds log ${manifest.logId} up to revision ${manifest.revision}`;
  return new AgentError('backup.store_not_empty', { problem });
}

/** Gives the archive's path. */
async function archiveFormer<T>(
  { place, paths, clock, version }: RestoreToEtcdOptions<T>,
  now: number,
  options: CallOptions,
): Promise<string> {
  const { client, prefix } = place;
  const store = new EtcdControlStore({ client, prefix: `${prefix}store/`, clock });
  await store.open(options);
  try {
    await refuseRunning(store, clock, options);
    const parts = { sealingKey: paths.sealingKey, folder: paths.backup, version, clock };
    const log = new EtcdLogCopy(client, `${prefix}log/`);
    const backups = new StoreBackups({ ...parts, log, store: new ControlStoreCopy(store, clock) });
    const file = `${paths.dataDir}/replaced-${new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.tar`;
    await writeArchive(file, backups.take({ withKey: false }, options));
    return file;
  } finally {
    await store.close();
  }
}

/** Whole, or not there. */
async function writeArchive(file: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const target = await open(file, 'wx', 0o600);
  try {
    for await (const piece of pieces) await target.writeFile(piece);
    await target.sync();
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await target.close();
  }
  await syncFolder(dirname(file));
}

async function refuseRunning(store: ControlStore, clock: Clock, options: CallOptions): Promise<void> {
  const versions = async () => new Map((await store.list(serverPrefix, options)).map(({ key, version }) => [key, version]));
  const before = await versions();
  await clock.sleep(SIGN_OF_LIFE_MS, options);
  const after = await versions();
  const alive = [...after].filter(([key, version]) => before.get(key) !== version).map(([key]) => key.slice(serverPrefix.length));
  if (alive.length > 0) throw new AgentError('backup.servers_running', { problem: `${alive.join(', ')} serves from there` });
}
