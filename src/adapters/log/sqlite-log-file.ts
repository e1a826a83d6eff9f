import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import { parseEntry } from '../../domain/log/entry.js';
import { digest, type Entry, type LogId, logId, type Revision, type SnapshotItem } from '../../domain/log/model.js';
import type { RetainedEntry } from '../../domain/log/retention.js';
import { RING_ENTRIES, RING_SIZE, type SizedEntry } from '../../domain/log/ring.js';
import { isDamage, message, openError, remedyOfDamage } from '../sqlite/sqlite-errors.js';
import type { CommitOutcome, OpenedLog, StoredBatch } from './log-store.js';
import { checkEnd, checkEntryRow, checkLog } from './sqlite-log-check.js';
import { checkHeader, closeQuietly, connect, createLog, exists, foldIn, keepPrivate } from './sqlite-log-connection.js';
import { copyInto, makeCopy, newestIntactCopy } from './sqlite-log-copies.js';
import { LogPaths } from './sqlite-log-paths.js';
import { KeyRows } from './sqlite-log-rows.js';
import { type FileState, text, writeState } from './sqlite-log-schema.js';
import { checkWitness, readWitness, Witness } from './sqlite-log-witness.js';

/** One page of a replay: a megabyte, or a thousand small entries. */
const PAGE_SIZE = 1024 * 1024;
const PAGE_ENTRIES = 1_000;

/** WAL pages after which the file is brought up, as SQLite's default: 4 MiB. */
const CHECKPOINT_PAGES = 1_000;

/** The log's file. Synchronous: it lives in the worker, where an fsync holds up nobody. */
export class SqliteLogFile {
  readonly #paths: LogPaths;
  readonly #witness: Witness;
  #db: DatabaseSync | undefined;
  #state: FileState | undefined;

  constructor(file: string) {
    this.#paths = new LogPaths(file);
    this.#witness = new Witness(this.#paths.witness);
  }

  /** @throws AgentError `log.corrupt`, `log.newer_schema`, `log.not_written`, `agent.data_dir_locked` */
  open(): OpenedLog {
    try {
      this.#makeOrCheck();
      return this.#load();
    } catch (error) {
      this.#discard();
      const failure = openError(error, this.#paths.file);
      if (failure.code !== 'log.corrupt') throw failure;
      const copy = newestIntactCopy(this.#paths);
      const remedy = remedyOfDamage(this.#paths.file, copy);
      const facts = { ...failure.facts, newestIntactCopy: copy ?? 'none', remedy };
      throw new AgentError('log.corrupt', facts, { cause: error });
    }
  }

  /** All of `batch` in one transaction and one fsync, or nothing of it. Never throws: what happened is learnt from the file. */
  commit(batch: StoredBatch): CommitOutcome {
    try {
      if (this.#db === undefined) this.#reopen();
    } catch (error) {
      return { outcome: 'not_written', problem: message(error) };
    }
    try {
      this.#write(batch);
      return { outcome: 'committed' };
    } catch (error) {
      this.#discard();
      return this.resolve(batch, message(error));
    }
  }

  /** Whether a batch whose commit failed is in the file. After a failed fsync only what a checkpoint has synced anew counts. */
  resolve(batch: StoredBatch, problem: string): CommitOutcome {
    try {
      const { last } = this.#db === undefined ? this.#reopen() : this.#current;
      if (last.digest === batch.previous.digest) return { outcome: 'not_written', problem };
      if (last.digest !== batch.last.digest)
        return { outcome: 'broken', problem: `it ends at ${last.revision}, in neither of the two states that it could have` };
      foldIn(this.#open);
      this.#witness.write(this.#current.logId, last);
      return { outcome: 'committed' };
    } catch (error) {
      this.#discard();
      return { outcome: isDamage(error) ? 'broken' : 'in_doubt', problem: message(error) };
    }
  }

  /** @throws AgentError `log.corrupt`; `log.closed` while the file cannot be opened */
  read(first: Revision): readonly Entry[] {
    const db = this.#readable();
    const entries: Entry[] = [];
    let size = 0;
    try {
      const rows = db.prepare('SELECT revision, digest, text FROM entries WHERE revision >= ? ORDER BY revision').iterate(first);
      for (const row of rows) {
        const { text, digest } = checkEntryRow(row);
        entries.push(parseEntry(text, digest));
        size += text.length;
        if (size >= PAGE_SIZE || entries.length >= PAGE_ENTRIES) break;
      }
      return entries;
    } catch (error) {
      throw openError(error, this.#paths.file);
    }
  }

  copy(now: number): { readonly file: string; readonly revision: Revision } {
    return makeCopy(this.#readable(), this.#paths, now);
  }

  /** As of the newest commit, verified. @throws AgentError `log.not_written`, `log.closed` */
  copyTo(file: string): { readonly logId: LogId; readonly revision: Revision } {
    const { logId, last } = copyInto(this.#readable(), file);
    return { logId, revision: last.revision };
  }

  /** Brings the file up when the WAL is long. To be called when nobody waits. */
  checkpoint(): void {
    if (this.#db === undefined) return;
    try {
      const pages = this.#db.prepare('PRAGMA wal_checkpoint(NOOP)').get();
      if (Number(pages?.log) - Number(pages?.checkpointed) < CHECKPOINT_PAGES) return;
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The WAL still has everything; a handle that failed is not used again (engine.md K1).
      this.#discard();
    }
  }

  close(): void {
    this.#discard();
    this.#witness.close();
  }

  #makeOrCheck(): void {
    if (exists(this.#paths.file)) {
      checkHeader(this.#paths.file);
      return;
    }
    const remains = [this.#paths.witness, this.#paths.wal, ...this.#paths.copies().map(({ file }) => file)].filter(exists);
    if (remains.length > 0)
      throw new AgentError('log.corrupt', { problem: `it is missing, but ${remains.join(', ')} shows that there was one` });
    try {
      createLog(this.#paths, logId(randomUUID()));
    } catch (error) {
      throw new AgentError('log.not_written', { problem: message(error) }, { cause: error });
    }
  }

  #load(): OpenedLog {
    for (const file of [this.#paths.file, this.#paths.wal, this.#paths.witness]) keepPrivate(file);
    const db = connect(this.#paths.file);
    this.#db = db;
    const items: SnapshotItem[] = [];
    const retained: RetainedEntry[] = [];
    const state = checkLog(db, {
      item: (key, value, revision) => items.push({ key, value, revision }),
      entry: ({ time, changes, requestId }, size) => retained.push({ time, changes, size, requestId }),
    });
    checkWitness(readWitness(this.#paths.witness), state.logId, state.last);
    this.#state = state;
    const { logId, last, minimum } = state;
    return { logId, last, minimum, items, retained, newest: newest(db), newestCopy: this.#paths.copies()[0]?.time };
  }

  /** @throws what `connect` and the check throw; the handle is then none */
  #reopen(): FileState {
    try {
      checkHeader(this.#paths.file);
      this.#db = connect(this.#paths.file);
      this.#state = checkEnd(this.#db);
      checkWitness(readWitness(this.#paths.witness), this.#state.logId, this.#state.last);
      return this.#state;
    } catch (error) {
      this.#discard();
      throw error;
    }
  }

  #write({ records, last, minimum, previous }: StoredBatch): void {
    const db = this.#open;
    const state = this.#current;
    if (state.last.digest !== previous.digest) throw new Error('the batch does not follow the last entry of the file');
    const rows = new KeyRows(db, state.seal.copy());
    const insert = db.prepare('INSERT INTO entries VALUES (?, ?, ?)');
    db.exec('BEGIN IMMEDIATE');
    for (const { text, digest } of records) {
      const entry = parseEntry(text, digest);
      insert.run(entry.revision, digest, text);
      for (const change of entry.changes) rows.apply(change, entry.revision);
    }
    db.prepare('DELETE FROM entries WHERE revision < ?').run(minimum);
    const after = { logId: state.logId, last, minimum, seal: rows.seal };
    writeState(db, after);
    db.exec('COMMIT');
    this.#state = after;
    this.#witness.write(after.logId, last);
  }

  #readable(): DatabaseSync {
    try {
      if (this.#db === undefined) this.#reopen();
    } catch (error) {
      throw new AgentError('log.closed', { problem: `the file cannot be opened: ${message(error)}` }, { cause: error });
    }
    return this.#open;
  }

  get #open(): DatabaseSync {
    if (this.#db === undefined) throw new AgentError('log.closed');
    return this.#db;
  }

  get #current(): FileState {
    if (this.#state === undefined) throw new AgentError('log.closed');
    return this.#state;
  }

  #discard(): void {
    const db = this.#db;
    this.#db = undefined;
    this.#state = undefined;
    if (db === undefined) return;
    try {
      if (db.isTransaction) db.exec('ROLLBACK');
    } catch {
      // Closing rolls back as well.
    }
    closeQuietly(db);
  }
}

/** The end of the entries, as much as the ring takes. They have just been checked. */
function newest(db: DatabaseSync): readonly SizedEntry[] {
  const found: SizedEntry[] = [];
  let size = 0;
  for (const row of db.prepare('SELECT digest, text FROM entries ORDER BY revision DESC').iterate()) {
    const stored = text(row.text);
    size += stored.length;
    if (found.length > 0 && (size > RING_SIZE || found.length >= RING_ENTRIES)) break;
    found.push({ entry: parseEntry(stored, digest(text(row.digest))), size: stored.length });
  }
  return found.reverse();
}
