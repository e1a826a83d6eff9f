import type { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import { type EntryFacts, readEntryFacts } from '../../domain/log/entry.js';
import { type Digest, type LogKey, logKey, type Revision, ZERO_DIGEST } from '../../domain/log/model.js';
import { sha256 } from './sha256.js';
import { checkSchema, type FileState, place, readState, text } from './sqlite-log-schema.js';
import { Seal } from './sqlite-log-seal.js';

/** What a check has seen on its way, so that an open reads the file once. */
export interface CheckVisitor {
  item(key: LogKey, value: string, revision: Revision): void;
  entry(facts: EntryFacts, size: number): void;
}

const NO_VISITOR: CheckVisitor = { item: () => {}, entry: () => {} };

/**
 * Everything there is to check: SQLite's structure, each retained entry's digest and the chain of them, every key row against the
 * seal, and both against the state row. Nothing is written.
 * @throws AgentError `log.corrupt`, `log.newer_schema`; what SQLite throws
 */
export function checkLog(db: DatabaseSync, visitor = NO_VISITOR): FileState {
  checkStructure(db);
  checkSchema(db);
  const state = readState(db);
  checkEntries(db, state, visitor);
  checkItems(db, state, visitor);
  return state;
}

/** What suffices after a failed commit of a file that had been checked: the structure, and that the end is whole. */
export function checkEnd(db: DatabaseSync): FileState {
  checkStructure(db);
  checkSchema(db);
  const state = readState(db);
  const row = db.prepare('SELECT revision, digest, text FROM entries ORDER BY revision DESC LIMIT 1').get();
  const last = row === undefined ? ZERO_DIGEST : checkEntryRow(row).digest;
  if (last !== state.last.digest) throw corrupt('its last entry is not the one that its state row names');
  return state;
}

export interface EntryRow {
  readonly facts: EntryFacts;
  readonly digest: Digest;
  readonly text: string;
}

/** @throws AgentError `log.corrupt`, `log.newer_schema` */
export function checkEntryRow(row: Readonly<Record<string, unknown>>): EntryRow {
  const stored = text(row.text);
  const number = place(row.revision);
  const own = sha256(stored);
  if (own !== row.digest) throw corrupt(`entry ${number} is damaged: its digest is another`);
  const facts = readEntryFacts(stored);
  if (facts.revision !== number) throw corrupt(`entry ${number} says that it is ${facts.revision}`);
  return { facts, digest: own, text: stored };
}

function checkStructure(db: DatabaseSync): void {
  const result = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
  if (result !== 'ok') throw corrupt(String(result).replaceAll('\n', ' '));
}

function checkEntries(db: DatabaseSync, { last, minimum }: FileState, visitor: CheckVisitor): void {
  if (last.revision > 0n && minimum > last.revision) throw corrupt('it has no entry');
  let expected: bigint = minimum;
  let previous: Digest | undefined = minimum === 1n ? ZERO_DIGEST : undefined;
  for (const row of db.prepare('SELECT revision, digest, text FROM entries ORDER BY revision').iterate()) {
    const { facts, digest, text } = checkEntryRow(row);
    if (facts.revision !== expected) throw corrupt(`entry ${expected} is missing`);
    if (previous !== undefined && facts.previousDigest !== previous)
      throw corrupt(`entry ${expected} does not follow the one before it`);
    visitor.entry(facts, text.length);
    previous = digest;
    expected += 1n;
  }
  if (expected !== last.revision + 1n) throw corrupt(`entry ${expected} is missing`);
  if (previous !== last.digest) throw corrupt('its last entry is not the one that its state row names');
}

function checkItems(db: DatabaseSync, { seal, last }: FileState, visitor: CheckVisitor): void {
  const found = new Seal();
  for (const row of db.prepare('SELECT key, revision, value FROM kv').iterate()) {
    const [key, value, revision] = [logKey(text(row.key)), text(row.value), place(row.revision)];
    if (revision > last.revision) throw corrupt(`key ${key} was changed at ${revision}, after the last entry`);
    found.add(key, revision, value);
    visitor.item(key, value, revision);
  }
  if (found.rows !== seal.rows) throw corrupt(`it holds ${found.rows} keys instead of ${seal.rows}`);
  if (found.sum !== seal.sum) throw corrupt('the content of a key is damaged');
}

function corrupt(problem: string): AgentError {
  return new AgentError('log.corrupt', { problem });
}
