import type { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import type { EntryHead } from '../../domain/log/entry.js';
import { digest, type LogId, logId, type Revision, revision } from '../../domain/log/model.js';
import { sha256 } from './sha256.js';
import { Seal } from './sqlite-log-seal.js';

/**
 * Additions raise the minor version and older programs read on; a newer major version is refused. Every version keeps `meta` as it
 * is, so that each program can tell. `WITHOUT ROWID`: one tree a table, no index that could disagree with it.
 */
export const SCHEMA_MAJOR = 1;
export const SCHEMA_VERSION = `${SCHEMA_MAJOR}.0`;

export const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE entries (revision INTEGER PRIMARY KEY, digest TEXT NOT NULL, text TEXT NOT NULL) STRICT;
  CREATE TABLE kv (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** The state row: everything else in the file is checked against it. */
export interface FileState {
  readonly logId: LogId;
  readonly last: EntryHead;
  /** Oldest entry in the file; `last` + 1 when there is none. */
  readonly minimum: Revision;
  readonly seal: Seal;
}

/** @throws AgentError `log.newer_schema`, `log.corrupt` */
export function checkSchema(db: DatabaseSync): void {
  const version = readMeta(db, 'schema');
  if (!(Number.parseInt(version, 10) <= SCHEMA_MAJOR))
    throw new AgentError('log.newer_schema', {
      problem: `it is of schema ${version}, this program knows ${SCHEMA_VERSION}`,
      schema: version,
      known: SCHEMA_VERSION,
    });
}

/** @throws AgentError `log.corrupt` */
export function readState(db: DatabaseSync): FileState {
  const parts = readMeta(db, 'state').split(' ');
  const [id = '', number = '', own = '', time = '', minimum = '', rows = '', sum = ''] = parts;
  return {
    logId: logId(id),
    last: { revision: revision(BigInt(number)), digest: digest(own), time: Number(time) },
    minimum: revision(BigInt(minimum)),
    seal: new Seal(Number(rows), sum),
  };
}

export function writeState(db: DatabaseSync, { logId, last, minimum, seal }: FileState): void {
  writeMeta(db, 'state', [logId, last.revision, last.digest, last.time, minimum, seal.rows, seal.sum].join(' '));
}

export function writeMeta(db: DatabaseSync, name: string, value: string): void {
  db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?, ?)').run(name, value, metaDigest(name, value));
}

/** @throws AgentError `log.corrupt` */
export function readMeta(db: DatabaseSync, name: string): string {
  const row = db.prepare('SELECT value, digest FROM meta WHERE name = ?').get(name);
  if (row === undefined) throw new AgentError('log.corrupt', { problem: `it has no ${name} row` });
  const value = text(row.value);
  if (metaDigest(name, value) !== row.digest) throw new AgentError('log.corrupt', { problem: `its ${name} row is damaged` });
  return value;
}

function metaDigest(name: string, value: string): string {
  return sha256(`${name}\n${value}`);
}

/** @throws AgentError `log.corrupt` when a column holds something else */
export function text(value: unknown): string {
  if (typeof value !== 'string') throw new AgentError('log.corrupt', { problem: 'a column holds no text' });
  return value;
}

/** @throws AgentError `log.corrupt` when a column holds something else */
export function place(value: unknown): Revision {
  if (typeof value !== 'number' || value < 0) throw new AgentError('log.corrupt', { problem: 'a column holds no revision' });
  return revision(BigInt(value));
}
