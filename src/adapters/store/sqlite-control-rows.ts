import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import type { StoredValue } from '../../ports/store/control-store.js';
import type { Commit, CommitAnswer } from './sqlite-control-protocol.js';

/**
 * Additions raise the minor version and older programs read on; a newer major version is refused. `WITHOUT ROWID`: one tree a table,
 * no index that could disagree with it.
 */
export const SCHEMA_MAJOR = 1;
const SCHEMA_VERSION = `${SCHEMA_MAJOR}.0`;

const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, digest TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE kv (key TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT NOT NULL, digest TEXT NOT NULL)
    STRICT, WITHOUT ROWID;
`;

/** Keys are printable ASCII, so that every key with a prefix sorts below the prefix with this. */
const AFTER_PRINTABLE = '\x7f';

/** The tables of one connection. Every row carries a digest, so that what the disk has changed is never served. */
export class ControlRows {
  readonly #meta;
  readonly #putMeta;
  readonly #get;
  readonly #list;
  readonly #all;
  readonly #put;
  readonly #remove;

  constructor(db: DatabaseSync) {
    this.#meta = db.prepare('SELECT value, digest FROM meta WHERE name = ?');
    this.#putMeta = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?, ?)');
    this.#get = db.prepare('SELECT key, version, value, digest FROM kv WHERE key = ?');
    this.#list = db.prepare('SELECT key, version, value, digest FROM kv WHERE key >= ? AND key < ? ORDER BY key');
    this.#all = db.prepare('SELECT key, version, value, digest FROM kv');
    this.#put = db.prepare('INSERT OR REPLACE INTO kv VALUES (?, ?, ?, ?)');
    this.#remove = db.prepare('DELETE FROM kv WHERE key = ?');
  }

  static create(db: DatabaseSync): void {
    db.exec(`BEGIN IMMEDIATE; ${SCHEMA}`);
    const rows = new ControlRows(db);
    rows.#writeMeta('schema', SCHEMA_VERSION);
    rows.writeVersion(0n);
    db.exec('COMMIT');
  }

  /** @throws AgentError `store.newer_schema`, `store.corrupt` */
  checkSchema(): void {
    const schema = this.#readMeta('schema');
    if (Number.parseInt(schema, 10) <= SCHEMA_MAJOR) return;
    throw new AgentError('store.newer_schema', { problem: `it is of schema ${schema}, this program knows ${SCHEMA_VERSION}` });
  }

  /** Every row. @throws AgentError `store.corrupt` */
  checkAll(version: bigint): void {
    for (const row of this.#all.iterate()) {
      const value = checked(row);
      if (value.version > version) throw corrupt(`${value.key} was written at ${value.version}, after the last commit`);
    }
  }

  /** Of the newest commit. @throws AgentError `store.corrupt` */
  version(): bigint {
    return BigInt(this.#readMeta('version'));
  }

  writeVersion(version: bigint): void {
    this.#writeMeta('version', String(version));
  }

  get(key: string): StoredValue | undefined {
    const row = this.#get.get(key);
    return row === undefined ? undefined : checked(row);
  }

  list(prefix: string): readonly StoredValue[] {
    return this.#list.all(prefix, `${prefix}${AFTER_PRINTABLE}`).map(checked);
  }

  /** Does `commit` as version `next`, if its conditions hold. */
  apply({ conditions, writes }: Commit, next: bigint): CommitAnswer {
    const holds = conditions.every(({ key, version }) => (this.get(key)?.version ?? 0n) === version);
    if (!holds) return { version: undefined, removed: [] };
    const removed: string[] = [];
    for (const { key, value } of writes) {
      if (value !== null) this.#put.run(key, next, value, rowDigest(key, next, value));
      else if (this.#remove.run(key).changes > 0) removed.push(key);
    }
    return { version: writes.length === 0 ? next - 1n : next, removed };
  }

  #readMeta(name: string): string {
    const row = this.#meta.get(name);
    if (row === undefined) throw corrupt(`it has no ${name} row`);
    const value = String(row.value);
    if (rowDigest(name, 0n, value) !== row.digest) throw corrupt(`its ${name} row is damaged`);
    return value;
  }

  #writeMeta(name: string, value: string): void {
    this.#putMeta.run(name, value, rowDigest(name, 0n, value));
  }
}

function checked(row: Readonly<Record<string, unknown>>): StoredValue {
  const { key, version, value, digest } = row;
  if (typeof key !== 'string' || typeof version !== 'number' || typeof value !== 'string') throw corrupt('a column is damaged');
  if (rowDigest(key, BigInt(version), value) !== digest) throw corrupt(`the value of ${JSON.stringify(key)} is damaged`);
  return { key, version: BigInt(version), value };
}

/** Against damage, not malice. Neither a key nor a number has a line break. */
function rowDigest(key: string, version: bigint, value: string): string {
  return hash('sha256', `${key}\n${version}\n${value}`);
}

function corrupt(problem: string): AgentError {
  return new AgentError('store.corrupt', { problem });
}
