import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Paths } from '../../domain/kernel/paths.js';
import type { LogId, Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { ControlStore, FormerStore } from '../../ports/store/control-store.js';
import { syncFolder } from '../files/durable-file.js';
import { restoreLog } from '../log/sqlite-log-restore.js';
import { SqliteControlStore } from '../store/sqlite-control-store.js';
import type { CheckedArchive } from './backup-archive.js';

export interface RestoreBackupOptions<T> {
  readonly archive: CheckedArchive;
  readonly paths: Pick<Paths, 'dataDir' | 'logDb' | 'controlDb' | 'sealingKey'>;
  readonly clock: Clock;
  /**
   * Makes the store fit to serve from, before it stands in its place.
   * @param keyFile has the key that the store goes with @param former is what it replaces, if there is anything
   */
  readonly settle: (store: ControlStore, keyFile: string, former: FormerStore | undefined) => Promise<T>;
}

export interface RestoredBackup<T> {
  readonly revision: Revision;
  /** New: agents hold back what would be removed until an operator confirms it (engine.md E3, J4). */
  readonly logId: LogId;
  readonly settled: T;
  /** What stood in the way and is kept, under its new names. */
  readonly aside: readonly string[];
}

/**
 * Puts log and state of an archive in place of those that are there, if any are. For a command, while no server runs. A crash in the
 * middle leaves the old or the new of each file, the other beside it; restoring again finishes it.
 * @throws AgentError `agent.data_dir_locked`, `store.*`, `log.*`; nothing was changed unless it is `log.*`
 */
export async function restoreBackup<T>(
  { archive, paths, clock, settle }: RestoreBackupOptions<T>,
  options: CallOptions,
): Promise<RestoredBackup<T>> {
  const unpacked = await unpack(archive, paths, options);
  try {
    const put = (former: FormerStore | undefined) =>
      withStore(unpacked.control, clock, (store) => settle(store, unpacked.keyFile, former), options);
    const settled = await withFormer(paths.controlDb, clock, put, options);
    const now = clock.now();
    const aside = await putKey(unpacked, paths, now);
    aside.push(...(await replace(unpacked.control, paths.controlDb, now)));
    const { revision, logId, aside: logAside } = restoreLog({ file: paths.logDb, now, copy: unpacked.log });
    return { revision, logId, settled, aside: [...aside, ...logAside] };
  } finally {
    await unpacked.remove();
  }
}

/** The files of an archive in the data directory, under names that no server knows. */
export interface Unpacked {
  readonly log: string;
  readonly control: string;
  /** The key that goes with them: the archive's, or the one that is there. */
  readonly keyFile: string;
  readonly hasKey: boolean;
  remove(): Promise<void>;
}

type UnpackPaths = Pick<Paths, 'logDb' | 'controlDb' | 'sealingKey'>;

/** @throws AgentError `store.key_missing` when the key is neither in the archive nor in its place */
export async function unpack(
  archive: CheckedArchive,
  { logDb, controlDb, sealingKey }: UnpackPaths,
  options: CallOptions,
): Promise<Unpacked> {
  const fresh = { log: `${logDb}.from-backup`, control: `${controlDb}.restoring`, key: `${sealingKey}.restoring` };
  const hasKey = archive.manifest.files.some(({ name }) => name === 'sealing.key');
  if (!hasKey && !existsSync(sealingKey)) {
    throw new AgentError('store.key_missing', {
      problem: `the archive holds no sealing key, and there is none at ${sealingKey}`,
    });
  }
  const remove = async () => {
    for (const file of leftOvers(Object.values(fresh))) await rm(file, { force: true });
  };
  await remove();
  try {
    await archive.extract('log.db', fresh.log, options);
    await archive.extract('control.db', fresh.control, options);
    if (hasKey) await archive.extract('sealing.key', fresh.key, options);
    return { log: fresh.log, control: fresh.control, keyFile: hasKey ? fresh.key : sealingKey, hasKey, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Puts the archive's key in its place; gives what stood there, under its new name, if it was another. */
export async function putKey(
  { keyFile, hasKey }: Unpacked,
  { sealingKey }: Pick<Paths, 'sealingKey'>,
  now: number,
): Promise<string[]> {
  return hasKey && !(await isSame(keyFile, sealingKey)) ? replace(keyFile, sealingKey, now) : [];
}

export async function withStore<T>(
  file: string,
  clock: Clock,
  use: (store: ControlStore) => Promise<T>,
  options: CallOptions,
): Promise<T> {
  const store = new SqliteControlStore({ file, clock });
  await store.open(options);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** What stands there may be why it is replaced: it is given as one that fails. */
async function withFormer<T>(
  file: string,
  clock: Clock,
  use: (former: FormerStore | undefined) => Promise<T>,
  options: CallOptions,
): Promise<T> {
  if (!existsSync(file)) return use(undefined);
  const store = new SqliteControlStore({ file, clock });
  try {
    await store.open(options);
  } catch (error) {
    await store.close();
    return use({ list: () => Promise.reject(error) });
  }
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** What stood there, its WAL too, keeps its content under another name. */
async function replace(from: string, to: string, now: number): Promise<string[]> {
  if (existsSync(`${from}-wal`)) throw new AgentError('store.unavailable', { problem: `${from} could not be brought up` });
  const moved = await setAside(to, now);
  await rename(from, to);
  await syncFolder(dirname(to));
  return moved;
}

/** Gives the new names. */
export async function setAside(to: string, now: number): Promise<string[]> {
  const stamp = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const moved: string[] = [];
  for (const suffix of ['', '-wal']) {
    if (!existsSync(`${to}${suffix}`)) continue;
    const name = freeName(`${to}.replaced-${stamp}`, suffix);
    await rename(`${to}${suffix}`, name);
    moved.push(name);
  }
  return moved;
}

function freeName(base: string, suffix: string): string {
  let name = `${base}${suffix}`;
  for (let n = 2; existsSync(name); n += 1) name = `${base}-${n}${suffix}`;
  return name;
}

async function isSame(one: string, other: string): Promise<boolean> {
  return existsSync(other) && (await readFile(one)).equals(await readFile(other));
}

function leftOvers(files: readonly string[]): readonly string[] {
  return files.flatMap((file) => [file, `${file}-wal`, `${file}-shm`]);
}
