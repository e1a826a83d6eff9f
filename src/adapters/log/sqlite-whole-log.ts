import type { DatabaseSync } from 'node:sqlite';
import { type EntryHead, type EntryRecord, parseEntry } from '../../domain/log/entry.js';
import { digest, type LogId, type Revision, type SnapshotItem } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import { openError } from '../sqlite/sqlite-errors.js';
import { checkLog } from './sqlite-log-check.js';
import { connect, foldIn, keepPrivate, makePrivateFile, readOnly } from './sqlite-log-connection.js';
import { checkCopy } from './sqlite-log-copies.js';
import { SCHEMA, SCHEMA_VERSION, text, writeMeta, writeState } from './sqlite-log-schema.js';
import { Seal } from './sqlite-log-seal.js';

/** So many rows, a few milliseconds of them, before others get a turn. */
const ROWS_PER_TURN = 256;

/** Everything that a log holds, as of its last entry. */
export interface WholeLog {
  readonly logId: LogId;
  readonly last: EntryHead;
  /** Oldest entry that is retained; `last` + 1 when there is none. */
  readonly minimum: Revision;
  readonly items: readonly SnapshotItem[];
  /** From `minimum` to `last`. */
  readonly entries: readonly EntryRecord[];
}

/** Of a file that nobody writes to; every digest is checked. @throws AgentError `log.corrupt`, `log.newer_schema` */
export function readWholeLog(file: string): WholeLog {
  const items: SnapshotItem[] = [];
  try {
    return readOnly(file, (db) => {
      const item = (key: SnapshotItem['key'], value: string, revision: Revision) => items.push({ key, value, revision });
      const { logId, last, minimum } = checkLog(db, { item, entry: () => {} });
      return { logId, last, minimum, items, entries: entriesOf(db) };
    });
  } catch (error) {
    throw openError(error, file);
  }
}

/** A new file (0600), checked, as a server with a store of its own would have it. @throws AgentError `log.corrupt`; of SQLite */
export async function writeWholeLog(file: string, log: WholeLog, { signal }: CallOptions): Promise<void> {
  makePrivateFile(file);
  const db = connect(file);
  try {
    // Nothing rests on a file that is not whole.
    db.exec(`PRAGMA synchronous = OFF; BEGIN IMMEDIATE; ${SCHEMA}`);
    const turn = turnsOf(signal);
    const insert = db.prepare('INSERT INTO entries VALUES (?, ?, ?)');
    for (const { entry, text } of log.entries) {
      insert.run(entry.revision, entry.digest, text);
      await turn();
    }
    const put = db.prepare('INSERT INTO kv VALUES (?, ?, ?)');
    const seal = new Seal();
    for (const { key, value, revision } of log.items) {
      put.run(key, revision, value);
      seal.add(key, revision, value);
      await turn();
    }
    writeMeta(db, 'schema', SCHEMA_VERSION);
    writeState(db, { logId: log.logId, last: log.last, minimum: log.minimum, seal });
    db.exec('COMMIT');
    foldIn(db);
  } finally {
    db.close();
  }
  keepPrivate(file);
  checkCopy(file);
}

function entriesOf(db: DatabaseSync): readonly EntryRecord[] {
  return db
    .prepare('SELECT digest, text FROM entries ORDER BY revision')
    .all()
    .map((row) => {
      const stored = text(row.text);
      return { entry: parseEntry(stored, digest(text(row.digest))), text: stored, size: stored.length };
    });
}

function turnsOf(signal: AbortSignal): () => Promise<void> {
  let count = 0;
  return async () => {
    count += 1;
    if (count % ROWS_PER_TURN !== 0) return;
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  };
}
