import { chmodSync, closeSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import type { LogId } from '../../domain/log/model.js';
import { EMPTY_HEAD, emptyState } from '../../domain/log/state.js';
import { errno } from '../sqlite/sqlite-errors.js';
import type { LogPaths } from './sqlite-log-paths.js';
import { SCHEMA, SCHEMA_VERSION, writeMeta, writeState } from './sqlite-log-schema.js';
import { Seal } from './sqlite-log-seal.js';

/** The WAL is cut to this after it was long: 64 MiB hold 16,000 pages, a batch of the largest usual size. */
const WAL_LIMIT = 64 * 1024 * 1024;

/**
 * The only connection. EXCLUSIVE keeps the WAL's index on the heap: no `-shm` file, so that reopening needs no disk space, and a
 * second process is told at once. Checkpoints are ours, between commits: SQLite's own would report their failure as the commit's.
 */
export function connect(file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE');
    const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (mode !== 'wal') throw new AgentError('log.corrupt', { problem: `its journal mode is ${mode}` });
    db.exec(`PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${WAL_LIMIT};
      PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON`);
    return db;
  } catch (error) {
    closeQuietly(db);
    throw error;
  }
}

/** For looking at a file that is not ours to change. SQLite may leave an empty WAL and an index beside it. */
export function readOnly<T>(file: string, look: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return look(db);
  } finally {
    closeQuietly(db);
  }
}

export function closeQuietly(db: DatabaseSync): void {
  try {
    db.close();
  } catch {
    // It is given up; what it has done is learnt from the file.
  }
}

/** A damaged or foreign file is never handed to SQLite to be "repaired": a file of ours says SQLite and WAL in its first bytes. */
export function checkHeader(file: string): void {
  const header = Buffer.alloc(20);
  const descriptor = openSync(file, 'r+');
  let length: number;
  try {
    if (!statSync(file).isFile()) throw new AgentError('log.corrupt', { problem: 'it is no regular file' });
    length = readSync(descriptor, header, 0, header.length, 0);
  } finally {
    closeSync(descriptor);
  }
  const problem = length === 0 ? 'it is empty' : 'it does not begin as a log';
  // Bytes 18 and 19: 2 is WAL (sqlite.org/fileformat2.html, 1.3).
  if (length < 20 || header.toString('latin1', 0, 16) !== 'SQLite format 3\0' || header[18] !== 2 || header[19] !== 2)
    throw new AgentError('log.corrupt', { problem });
}

/** A log with nothing in it, whole and durable under its name or not there at all. Its folder is there. */
export function createLog(paths: LogPaths, logId: LogId): void {
  for (const leftOver of [paths.fresh, `${paths.fresh}-wal`]) rmSync(leftOver, { force: true });
  makePrivateFile(paths.fresh);
  const db = connect(paths.fresh);
  try {
    db.exec(`BEGIN IMMEDIATE; ${SCHEMA}`);
    writeMeta(db, 'schema', SCHEMA_VERSION);
    writeState(db, { logId, last: EMPTY_HEAD, minimum: emptyState(logId).minimum, seal: new Seal() });
    db.exec('COMMIT');
    foldIn(db);
  } finally {
    db.close();
  }
  putInPlace(paths.fresh, paths.file, paths.folder);
}

/** Everything is in the file itself when it returns, so that it may be renamed. A close alone would keep a failure to itself. */
export function foldIn(db: DatabaseSync): void {
  const result = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  if (result?.busy !== 0) throw new AgentError('log.not_written', { problem: 'the WAL could not be folded in' });
}

/** Durable when it returns: the file's content, then its name. */
export function putInPlace(from: string, to: string, folder: string): void {
  syncPath(from);
  renameSync(from, to);
  syncPath(folder);
}

export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export function makePrivateFile(file: string): void {
  closeSync(openSync(file, 'wx', 0o600));
}

/** Also on files that an older program or a person has made. */
export function keepPrivate(file: string): void {
  if (exists(file) && (statSync(file).mode & 0o777) !== 0o600) chmodSync(file, 0o600);
}

export function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (errno(error) === 'ENOENT') return false;
    throw error;
  }
}
