import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { AgentError, type ErrorCode } from '../../domain/kernel/errors.js';
import type { StoredValue } from '../../ports/store/control-store.js';
import {
  checkHeader,
  closeQuietly,
  connect,
  exists,
  foldIn,
  keepPrivate,
  makePrivateFile,
  putInPlace,
} from '../log/sqlite-log-connection.js';
import { message, openError } from '../sqlite/sqlite-errors.js';
import type { Commit, CommitAnswer, CommitOutcome, Listing } from './sqlite-control-protocol.js';
import { ControlRows } from './sqlite-control-rows.js';

/** WAL pages after which the file is brought up, as SQLite's default: 4 MiB. */
const CHECKPOINT_PAGES = 1_000;

interface Open {
  readonly db: DatabaseSync;
  readonly rows: ControlRows;
  version: bigint;
}

/** The store's file. Synchronous: it lives in the worker, where an fsync holds up nobody. */
export class SqliteControlFile {
  readonly #file: string;
  readonly #wal: string;
  #open: Open | undefined;

  constructor(file: string) {
    this.#file = file;
    this.#wal = `${file}-wal`;
  }

  /** Makes it where there is none; every row is checked. @throws AgentError `store.corrupt`, `store.newer_schema`, `store.unavailable`, `agent.data_dir_locked` */
  open(): void {
    try {
      if (!exists(this.#file)) this.#create();
      const { rows, version } = this.#connect();
      rows.checkAll(version);
      foldInWal(this.#open);
    } catch (error) {
      this.#discard();
      throw storeError(error, this.#file);
    }
  }

  /** All of them in one transaction and one fsync. Never throws: what happened is learnt from the file. */
  commit(commits: readonly Commit[]): CommitOutcome {
    let before: bigint;
    try {
      before = this.#current().version;
    } catch (error) {
      return { outcome: 'not_written', problem: message(error) };
    }
    let answers: readonly CommitAnswer[] = [];
    try {
      answers = this.#judge(commits);
      this.#finish(answers);
      return { outcome: 'committed', answers };
    } catch (error) {
      this.#discard();
      return this.#resolve(before, answers, message(error));
    }
  }

  /** A new file (0600) as of the newest commit, checked. @throws AgentError `store.corrupt`, `store.unavailable` */
  copyTo(file: string): void {
    this.#read(({ db }) => {
      makePrivateFile(file);
      db.prepare('VACUUM INTO ?').run(file);
      // SQLite makes it without a WAL; a file of ours has one.
      connect(file).close();
    });
    const copy = new SqliteControlFile(file);
    try {
      copy.open();
    } finally {
      copy.close();
    }
  }

  /** @throws AgentError `store.corrupt`, `store.unavailable` */
  get(key: string): StoredValue | undefined {
    return this.#read(({ rows }) => rows.get(key));
  }

  /** @throws AgentError `store.corrupt`, `store.unavailable` */
  list(prefix: string): Listing {
    return this.#read(({ rows, version }) => ({ values: rows.list(prefix), version }));
  }

  /** Brings the file up when the WAL is long. To be called when nobody waits. */
  checkpoint(): void {
    if (this.#open === undefined) return;
    try {
      const pages = this.#open.db.prepare('PRAGMA wal_checkpoint(NOOP)').get();
      if (Number(pages?.log) - Number(pages?.checkpointed) >= CHECKPOINT_PAGES)
        this.#open.db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The WAL still has everything; a handle that failed is not used again (engine.md K1).
      this.#discard();
    }
  }

  close(): void {
    this.#discard();
  }

  #create(): void {
    if (exists(this.#wal))
      throw new AgentError('store.corrupt', { problem: `it is missing, but ${this.#wal} shows that there was one` });
    const fresh = `${this.#file}.new`;
    for (const leftOver of [fresh, `${fresh}-wal`]) rmSync(leftOver, { force: true });
    makePrivateFile(fresh);
    const db = connect(fresh);
    try {
      ControlRows.create(db);
      foldIn(db);
    } finally {
      db.close();
    }
    putInPlace(fresh, this.#file, dirname(this.#file));
  }

  #connect(): Open {
    checkHeader(this.#file);
    for (const file of [this.#file, this.#wal]) keepPrivate(file);
    const db = connect(this.#file);
    try {
      const result = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
      if (result !== 'ok') throw new AgentError('store.corrupt', { problem: String(result).replaceAll('\n', ' ') });
      const rows = new ControlRows(db);
      rows.checkSchema();
      this.#open = { db, rows, version: rows.version() };
      return this.#open;
    } catch (error) {
      closeQuietly(db);
      throw error;
    }
  }

  #current(): Open {
    return this.#open ?? this.#connect();
  }

  #judge(commits: readonly Commit[]): readonly CommitAnswer[] {
    const { db, rows, version } = this.#current();
    db.exec('BEGIN IMMEDIATE');
    let last = version;
    return commits.map((commit) => {
      const answer = rows.apply(commit, last + 1n);
      last = answer.version ?? last;
      return answer;
    });
  }

  #finish(answers: readonly CommitAnswer[]): void {
    const open = this.#current();
    const last = answers.reduce((newest, { version }) => version ?? newest, open.version);
    if (last > open.version) open.rows.writeVersion(last);
    open.db.exec('COMMIT');
    open.version = last;
  }

  /** After a failed commit. After a failed fsync only what a checkpoint has synced anew counts. */
  #resolve(before: bigint, answers: readonly CommitAnswer[], problem: string): CommitOutcome {
    try {
      const { db, version } = this.#connect();
      if (version === before) return { outcome: 'not_written', problem };
      foldIn(db);
      return { outcome: 'committed', answers };
    } catch (error) {
      this.#discard();
      return { outcome: 'in_doubt', problem: message(error) };
    }
  }

  #read<T>(look: (open: Open) => T): T {
    try {
      return look(this.#current());
    } catch (error) {
      this.#discard();
      throw storeError(error, this.#file);
    }
  }

  #discard(): void {
    const db = this.#open?.db;
    this.#open = undefined;
    if (db === undefined) return;
    try {
      if (db.isTransaction) db.exec('ROLLBACK');
    } catch {
      // Closing rolls back as well.
    }
    closeQuietly(db);
  }
}

/** What a former process has left in the WAL is in the file before anybody counts on it. */
function foldInWal(open: Open | undefined): void {
  if (open !== undefined) foldIn(open.db);
}

const storeCodes: Readonly<Partial<Record<ErrorCode, ErrorCode>>> = {
  'log.corrupt': 'store.corrupt',
  'log.newer_schema': 'store.newer_schema',
  'log.not_written': 'store.unavailable',
};

/** What the functions that are shared with the log say of a file is said of this one. */
function storeError(error: unknown, file: string): AgentError {
  const failure = openError(error, file);
  const code = storeCodes[failure.code];
  return code === undefined ? failure : new AgentError(code, failure.facts, { cause: error });
}
