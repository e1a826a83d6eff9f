import { randomUUID } from 'node:crypto';
import { renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { InstructionKey } from '../../domain/instruction/model.js';
import { isFinished } from '../../domain/instruction/row.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { epoch as epochOf } from '../../domain/link/model.js';
import type { Generation } from '../../domain/vip/model.js';
import type {
  JournalChange,
  JournalEntry,
  JournalFacts,
  OpenedJournal,
  StoredReply,
  TombstoneLimits,
} from '../../ports/instruction/journal.js';
import {
  checkHeader,
  closeQuietly,
  connect,
  exists,
  foldIn,
  keepPrivate,
  makePrivateFile,
  syncPath,
} from '../log/sqlite-log-connection.js';
import { isDamage, message, openError } from '../sqlite/sqlite-errors.js';
import type { CommitResult, OpenedFile } from './sqlite-journal-protocol.js';
import { RESERVE_BYTES, Reserve } from './sqlite-journal-reserve.js';
import {
  checkSchema,
  ENTRY,
  entryOf,
  factsOf,
  readMeta,
  replyOf,
  SCHEMA,
  SCHEMA_VERSION,
  writeMeta,
} from './sqlite-journal-schema.js';

/** WAL pages after which the file is brought up: 4 MiB. */
const CHECKPOINT_PAGES = 1_000;
/** Between tries to have the reserve again. */
const RESERVE_AGAIN_MS = 10_000;

type Commit = readonly JournalChange[];

/** The journal's file. Synchronous: it lives in the worker, where an fsync holds up nobody. */
export class SqliteJournalFile {
  readonly #file: string;
  readonly #reserve: Reserve;
  #db: DatabaseSync | undefined;
  #facts: JournalFacts | undefined;
  /** The disk was full: what is new is refused, until the reserve is there again. */
  #tightSince: number | undefined;

  constructor(file: string, reserveBytes = RESERVE_BYTES) {
    this.#file = file;
    this.#reserve = new Reserve(`${file}.reserve`, reserveBytes);
  }

  /** @throws AgentError `journal.newer_schema`, `journal.unavailable`, `agent.data_dir_locked` */
  open(now: number): OpenedFile {
    try {
      const setAside = this.#makeOrCheck(now);
      this.#reserve.make();
      return { ...this.#load(), facts: this.#ready.facts, setAside };
    } catch (error) {
      this.#discard();
      throw this.#openError(error);
    }
  }

  /** Those that fit together share one fsync. Does not throw. */
  commit(commits: readonly Commit[], now: number): CommitResult {
    const admitted = commits.map((commit) => this.#isTight(now) && admitsWork(commit));
    const written = commits.filter((_, place) => !admitted[place]);
    const problem = written.length === 0 ? undefined : this.#tryCommit(written.flat());
    const problems =
      problem !== undefined && this.#tightSince === undefined && isFull(problem.error)
        ? this.#commitFromReserve(commits, now)
        : admitted.map((refused) => (refused ? FULL : problem && message(problem.error)));
    return { facts: this.#facts ?? NO_FACTS, problems };
  }

  /** @throws AgentError `journal.unavailable` */
  find(keys: readonly InstructionKey[]): readonly (JournalEntry | undefined)[] {
    return this.#read((db) => {
      const select = db.prepare(`SELECT ${ENTRY} WHERE i.fleet = ? AND i.tag = ?`);
      return keys.map(({ fleet, tag }) => {
        const columns = select.get(fleet, tag);
        return columns === undefined ? undefined : entryOf(columns);
      });
    });
  }

  /** @throws AgentError `journal.unavailable` */
  reply({ fleet, tag }: InstructionKey, table: 'replies' | 'set_aside'): StoredReply | undefined {
    return this.#read((db) => {
      const sql = `SELECT type, json_b64 FROM ${table} JOIN instructions USING (sequence) WHERE fleet = ? AND tag = ?`;
      const columns = db.prepare(sql).get(fleet, tag);
      return columns === undefined ? undefined : replyOf(columns);
    });
  }

  /** @throws AgentError `journal.unavailable` */
  payload({ fleet, tag }: InstructionKey): string | undefined {
    return this.#read((db) => {
      const sql = 'SELECT json_b64 FROM payloads JOIN instructions USING (sequence) WHERE fleet = ? AND tag = ?';
      const jsonB64 = db.prepare(sql).get(fleet, tag)?.json_b64;
      return typeof jsonB64 === 'string' ? jsonB64 : undefined;
    });
  }

  /** @throws AgentError `journal.unavailable` */
  vipGeneration(fleet: string): Generation {
    const select = 'SELECT value FROM meta WHERE name = ?';
    return this.#read((db) => BigInt(String(db.prepare(select).get(vipName(fleet))?.value ?? 0)));
  }

  /** @throws AgentError `journal.unavailable` */
  prune({ receivedBefore, expiredBefore, most }: TombstoneLimits): void {
    const tombstones = 'finished = 1 AND sequence NOT IN (SELECT sequence FROM replies)';
    this.#read((db) => {
      db.prepare(
        `DELETE FROM instructions WHERE ${tombstones} AND received_at < ? AND (expires_at IS NULL OR expires_at < ?)`,
      ).run(receivedBefore, expiredBefore);
      db.prepare(
        `DELETE FROM instructions WHERE ${tombstones} AND sequence NOT IN
          (SELECT sequence FROM instructions WHERE ${tombstones} ORDER BY sequence DESC LIMIT ?)`,
      ).run(most);
      db.exec('DELETE FROM set_aside WHERE sequence NOT IN (SELECT sequence FROM instructions)');
    });
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
  }

  /** Where a damaged file was put: the memory is gone, and a new id says so (engine.md A12, K). */
  #makeOrCheck(now: number): string | undefined {
    let setAside: string | undefined;
    if (exists(this.#file) && statSync(this.#file).size > 0) {
      try {
        this.#connect();
        return undefined;
      } catch (error) {
        this.#discard();
        if (!isBroken(error)) throw error;
        setAside = `${this.#file}.damaged-${now}`;
        renameSync(this.#file, setAside);
        if (exists(`${this.#file}-wal`)) renameSync(`${this.#file}-wal`, `${setAside}-wal`);
      }
    }
    this.#create();
    return setAside;
  }

  #create(): void {
    if (!exists(this.#file)) makePrivateFile(this.#file);
    const db = connect(this.#file);
    try {
      db.exec(`BEGIN IMMEDIATE; ${SCHEMA}`);
      writeMeta(db, 'schema', SCHEMA_VERSION);
      writeMeta(db, 'id', randomUUID());
      writeMeta(db, 'counter', '0');
      db.exec('COMMIT');
      foldIn(db);
    } finally {
      closeQuietly(db);
    }
    syncPath(dirname(this.#file));
    this.#connect();
  }

  /** Everything that is checked before a file is used; the same after each failure (engine.md K1). */
  #connect(): DatabaseSync {
    checkHeader(this.#file);
    keepPrivate(this.#file);
    const db = connect(this.#file);
    this.#db = db;
    const result = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
    if (result !== 'ok') throw new Broken(String(result));
    checkSchema(db);
    this.#facts = { id: readMeta(db, 'id'), counter: BigInt(readMeta(db, 'counter')) };
    return db;
  }

  #load(): OpenedJournal {
    const { db } = this.#ready;
    const live = db
      .prepare(`SELECT ${ENTRY} WHERE i.finished = 0 OR r.sequence IS NOT NULL ORDER BY i.sequence`)
      .all()
      .map((columns) => entryOf(columns));
    const epochs = db.prepare('SELECT fleet, epoch FROM epochs').all();
    return { live, epochs: new Map(epochs.map(({ fleet, epoch }) => [String(fleet), epochOf(BigInt(String(epoch)))])) };
  }

  /** Undefined when it is durable. What a failed commit has done is learnt from the file. */
  #tryCommit(changes: Commit): { readonly error: unknown } | undefined {
    let before: JournalFacts | undefined;
    try {
      const { db, facts } = this.#ready;
      before = facts;
      this.#write(db, changes, facts.counter + 1n);
      this.#facts = { ...facts, counter: facts.counter + 1n };
      return undefined;
    } catch (error) {
      this.#discard();
      return before !== undefined && this.#isWritten(before.counter + 1n) ? undefined : { error };
    }
  }

  /** After a failed fsync only what a checkpoint has synced anew counts. */
  #isWritten(counter: bigint): boolean {
    try {
      const { db, facts } = this.#ready;
      if (facts.counter !== counter) return false;
      foldIn(db);
      return true;
    } catch {
      this.#discard();
      return false;
    }
  }

  /** Each on its own: results go into the space of the reserve, new work does not. */
  #commitFromReserve(commits: readonly Commit[], now: number): readonly (string | undefined)[] {
    this.#reserve.release();
    this.#tightSince = now;
    return commits.map((commit) => {
      if (admitsWork(commit)) return FULL;
      const problem = this.#tryCommit(commit);
      return problem && message(problem.error);
    });
  }

  #isTight(now: number): boolean {
    if (this.#tightSince === undefined) return false;
    if (now - this.#tightSince < RESERVE_AGAIN_MS) return true;
    this.#tightSince = this.#reserve.make() ? undefined : now;
    return this.#tightSince !== undefined;
  }

  #write(db: DatabaseSync, changes: Commit, counter: bigint): void {
    db.exec('BEGIN IMMEDIATE');
    for (const change of changes) applyChange(db, change);
    writeMeta(db, 'counter', String(counter));
    db.exec('COMMIT');
  }

  #read<T>(read: (db: DatabaseSync) => T): T {
    try {
      return read(this.#ready.db);
    } catch (error) {
      throw this.#openError(error);
    }
  }

  get #ready(): { readonly db: DatabaseSync; readonly facts: JournalFacts } {
    const db = this.#db ?? this.#connect();
    if (this.#facts === undefined) throw new Error('it has no counter');
    return { db, facts: this.#facts };
  }

  #openError(error: unknown): AgentError {
    if (error instanceof AgentError && (error.code === 'journal.newer_schema' || error.code === 'journal.unavailable'))
      return error;
    const { code } = openError(error, this.#file);
    const facts = { problem: `${this.#file}: ${message(error)}` };
    return new AgentError(code === 'agent.data_dir_locked' ? code : 'journal.unavailable', facts, { cause: error });
  }

  #discard(): void {
    const db = this.#db;
    this.#db = undefined;
    if (db !== undefined) closeQuietly(db);
  }
}

const FULL = 'the disk is full: only what runs already is finished';
const NO_FACTS: JournalFacts = { id: '', counter: 0n };

/** What quick_check found. */
class Broken extends Error {}

function isBroken(error: unknown): boolean {
  if (error instanceof AgentError) return error.code === 'log.corrupt';
  // A file that is a database, and not ours.
  return error instanceof Broken || isDamage(error) || (error instanceof Error && /no such table|it has no/.test(error.message));
}

/** SQLITE_FULL. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && Number(error.errcode) % 256 === 13;
}

/** Whether it lets an instruction in, which can be refused; everything else ends one. */
function admitsWork(commit: Commit): boolean {
  return commit.some((change) => change.change === 'row' && change.row.state === 'received');
}

/** The others of their table have no blank. */
const vipName = (fleet: string) => `vip ${fleet}`;

const SEQUENCE = '(SELECT sequence FROM instructions WHERE fleet = ? AND tag = ?)';

function applyChange(db: DatabaseSync, change: JournalChange): void {
  switch (change.change) {
    case 'row': {
      const { row } = change;
      const values = [row.fleet, row.tag, isFinished(row) ? 1 : 0, row.receivedAt, row.expiresAt ?? null, factsOf(row)];
      db.prepare(
        `INSERT INTO instructions (fleet, tag, finished, received_at, expires_at, facts) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET finished = excluded.finished, received_at = excluded.received_at,
           expires_at = excluded.expires_at, facts = excluded.facts`,
      ).run(...values);
      return;
    }
    case 'payload': {
      const { key, jsonB64 } = change;
      if (jsonB64 === undefined) remove(db, 'payloads', key);
      else db.prepare(`INSERT OR REPLACE INTO payloads VALUES (${SEQUENCE}, ?)`).run(key.fleet, key.tag, jsonB64);
      return;
    }
    case 'reply':
      if (change.reply === undefined) remove(db, 'replies', change.key);
      else putReply(db, 'replies', change.key, change.reply);
      return;
    case 'set_aside':
      putReply(db, 'set_aside', change.key, change.reply);
      return;
    case 'remove':
      for (const table of ['payloads', 'replies', 'set_aside', 'instructions'] as const) remove(db, table, change.key);
      return;
    case 'epoch':
      db.prepare('INSERT OR REPLACE INTO epochs VALUES (?, ?)').run(change.fleet, String(change.epoch));
      return;
    case 'vip':
      writeMeta(db, vipName(change.fleet), String(change.generation));
  }
}

function remove(
  db: DatabaseSync,
  table: 'payloads' | 'replies' | 'set_aside' | 'instructions',
  { fleet, tag }: InstructionKey,
): void {
  db.prepare(`DELETE FROM ${table} WHERE sequence = ${SEQUENCE}`).run(fleet, tag);
}

function putReply(db: DatabaseSync, table: 'replies' | 'set_aside', { fleet, tag }: InstructionKey, reply: StoredReply): void {
  const [type, jsonB64] = reply === 'none' ? [null, null] : [reply.type, reply.jsonB64];
  db.prepare(`INSERT OR REPLACE INTO ${table} VALUES (${SEQUENCE}, ?, ?)`).run(fleet, tag, type, jsonB64);
}
