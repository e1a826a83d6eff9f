import { rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import { type Cursor, digest, logId, logKey, revision, type SnapshotItem } from '../../domain/log/model.js';
import type { OpenedView, StoredView, ViewBatch, ViewBinding } from '../../ports/log/view-store.js';
import { message, openError } from '../sqlite/sqlite-errors.js';
import { checkHeader, closeQuietly, connect, exists, keepPrivate, makePrivateFile } from './sqlite-log-connection.js';
import { KeyRows } from './sqlite-log-rows.js';
import { place, readMeta, text, writeMeta } from './sqlite-log-schema.js';
import { Seal } from './sqlite-log-seal.js';

/** Any other is dropped. */
const SCHEMA_VERSION = 'view 1';

const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE kv (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** What stands beside the rows: everything in the file is checked against it. */
interface ViewState extends Omit<StoredView, 'items'> {
  readonly seal: Seal;
}

/** A file that cannot be used, and why. */
class Unusable extends Error {}

/** The view's file. Synchronous: it lives in the worker. What is wrong with it is a reason to begin anew, unless the disk is at fault. */
export class SqliteViewFile {
  readonly #file: string;
  #binding: string | undefined;
  #db: DatabaseSync | undefined;
  /** Undefined while nothing is stored. */
  #state: ViewState | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** @throws AgentError `log.view_not_written` */
  open(binding: ViewBinding): OpenedView {
    this.#discard();
    this.#binding = JSON.stringify([binding.fleet, binding.nid, binding.registration]);
    return this.#guard(() => this.#openOrDrop());
  }

  /** @throws AgentError `log.view_not_written` */
  replace({ items, ...view }: StoredView): void {
    this.#guard(() => {
      const db = this.#usable();
      const rows = new KeyRows(db, new Seal());
      db.exec('BEGIN IMMEDIATE; DELETE FROM kv');
      for (const { key, value, revision } of items) rows.apply({ key, value }, revision);
      this.#commit(db, { ...view, seal: rows.seal });
    });
  }

  /** @throws AgentError `log.view_not_written` */
  append({ previous, changes, ...view }: ViewBatch): boolean {
    return this.#guard(() => {
      const db = this.#usable();
      const stored = this.#state;
      if (stored === undefined || !sameCursor(stored.cursor, previous)) return false;
      const rows = new KeyRows(db, stored.seal.copy());
      db.exec('BEGIN IMMEDIATE');
      for (const { key, value, revision } of changes) rows.apply({ key, value }, revision);
      this.#commit(db, { ...view, seal: rows.seal });
      return true;
    });
  }

  close(): void {
    this.#binding = undefined;
    this.#discard();
  }

  #commit(db: DatabaseSync, state: ViewState): void {
    writeMeta(db, 'state', stateText(state));
    db.exec('COMMIT');
    this.#state = state;
  }

  #usable(): DatabaseSync {
    if (this.#db === undefined && this.#binding !== undefined) this.#openOrDrop();
    if (this.#db === undefined) throw new AgentError('log.view_not_written', { problem: 'the view is not open' });
    return this.#db;
  }

  #openOrDrop(): OpenedView {
    try {
      if (exists(this.#file)) return { view: this.#load(), dropped: undefined };
      this.#create();
      return { view: undefined, dropped: undefined };
    } catch (error) {
      this.#discard();
      const failure = error instanceof Unusable ? error : openError(error, this.#file);
      if (failure instanceof AgentError && failure.code !== 'log.corrupt') throw failure;
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${this.#file}${suffix}`, { force: true });
      this.#create();
      return { view: undefined, dropped: failure.message };
    }
  }

  #create(): void {
    makePrivateFile(this.#file);
    const db = this.#connect();
    db.exec(`BEGIN IMMEDIATE; ${SCHEMA}`);
    writeMeta(db, 'schema', SCHEMA_VERSION);
    writeMeta(db, 'binding', this.#binding ?? '');
    db.exec('COMMIT');
    this.#state = undefined;
  }

  /** A crash may cost the newest commits of it, never a part of one: what it lacks is read from the log again. */
  #connect(): DatabaseSync {
    const db = connect(this.#file);
    this.#db = db;
    db.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 1000');
    return db;
  }

  /** @throws Unusable, AgentError `log.corrupt`, and what SQLite throws */
  #load(): StoredView | undefined {
    for (const file of [this.#file, `${this.#file}-wal`]) keepPrivate(file);
    checkHeader(this.#file);
    const db = this.#connect();
    const result = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
    if (result !== 'ok') throw new Unusable(`it is damaged: ${String(result).replaceAll('\n', ' ')}`);
    const schema = readMeta(db, 'schema');
    if (schema !== SCHEMA_VERSION) throw new Unusable(`it is of format ${schema}, this program knows ${SCHEMA_VERSION}`);
    if (readMeta(db, 'binding') !== this.#binding) throw new Unusable('it is of another fleet, node or registration');
    if (db.prepare("SELECT 1 FROM meta WHERE name = 'state'").get() === undefined) return undefined;
    const state = parseState(readMeta(db, 'state'));
    const items = readItems(db, state.seal);
    this.#state = state;
    const { seal: _, ...view } = state;
    return { ...view, items };
  }

  /** After a failure the handle is dead (engine.md K1): the next call opens and checks the file anew. */
  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#discard();
      const facts = { file: this.#file, problem: `${this.#file}: ${message(error)}` };
      throw new AgentError('log.view_not_written', facts, { cause: error });
    }
  }

  #discard(): void {
    const db = this.#db;
    this.#db = undefined;
    this.#state = undefined;
    if (db !== undefined) closeQuietly(db);
  }
}

/** Sorted by key. */
function readItems(db: DatabaseSync, seal: Seal): readonly SnapshotItem[] {
  const items: SnapshotItem[] = [];
  const found = new Seal();
  for (const row of db.prepare('SELECT key, revision, value FROM kv ORDER BY key').iterate()) {
    const [key, value, at] = [logKey(text(row.key)), text(row.value), place(row.revision)];
    found.add(key, at, value);
    items.push({ key, value, revision: at });
  }
  if (found.rows !== seal.rows || found.sum !== seal.sum) throw new Unusable('its content is damaged');
  return items;
}

function sameCursor(a: Cursor, b: Cursor): boolean {
  return a.logId === b.logId && a.revision === b.revision && a.digest === b.digest;
}

function stateText({ cursor, time, currentAt, seal }: ViewState): string {
  return [cursor.logId, cursor.revision, cursor.digest, time, currentAt, seal.rows, seal.sum].join(' ');
}

/** @throws RangeError for what is none */
function parseState(stored: string): ViewState {
  const [id = '', number = '', own = '', time = '', currentAt = '', rows = '', sum = ''] = stored.split(' ');
  return {
    cursor: { logId: logId(id), revision: revision(BigInt(number)), digest: digest(own) },
    time: Number(time),
    currentAt: Number(currentAt),
    seal: new Seal(Number(rows), sum),
  };
}
