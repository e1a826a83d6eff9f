import type { DatabaseSync } from 'node:sqlite';
import type { Row } from '../../domain/instruction/row.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { JournalEntry, StoredReply } from '../../ports/instruction/journal.js';

/** Additions raise the minor version and older programs read on; a newer major version is refused. */
export const SCHEMA_MAJOR = 1;
export const SCHEMA_VERSION = `${SCHEMA_MAJOR}.0`;

export const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE instructions (
    sequence INTEGER PRIMARY KEY, fleet TEXT NOT NULL, tag TEXT NOT NULL, finished INTEGER NOT NULL,
    received_at INTEGER NOT NULL, expires_at INTEGER, facts TEXT NOT NULL, UNIQUE (fleet, tag)) STRICT;
  CREATE INDEX unfinished ON instructions (sequence) WHERE finished = 0;
  CREATE TABLE payloads (sequence INTEGER PRIMARY KEY, json_b64 TEXT NOT NULL) STRICT;
  CREATE TABLE replies (sequence INTEGER PRIMARY KEY, type TEXT, json_b64 TEXT) STRICT;
  CREATE TABLE set_aside (sequence INTEGER PRIMARY KEY, type TEXT, json_b64 TEXT) STRICT;
  CREATE TABLE epochs (fleet TEXT PRIMARY KEY, epoch TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** Columns of an entry, to be read by `entryOf`. */
export const ENTRY = `i.fleet, i.tag, i.facts, p.sequence IS NOT NULL AS has_payload, r.sequence IS NOT NULL AS has_reply,
  coalesce(length(r.type) + length(r.json_b64), 0) AS reply_bytes
  FROM instructions i LEFT JOIN payloads p USING (sequence) LEFT JOIN replies r USING (sequence)`;

export type Columns = Readonly<Record<string, unknown>>;

export function entryOf({ fleet, tag, facts, has_payload, has_reply, reply_bytes }: Columns): JournalEntry {
  return {
    row: rowOf(fleet, tag, String(facts)),
    hasPayload: has_payload === 1,
    hasReply: has_reply === 1,
    replyBytes: Number(reply_bytes),
  };
}

export function replyOf({ type, json_b64 }: Columns): StoredReply {
  return typeof type === 'string' ? { type, jsonB64: String(json_b64) } : 'none';
}

/** What is as usual is left out: a tombstone takes about 250 bytes. */
const USUAL: Readonly<Record<string, unknown>> = {
  ...{ payloadDigest: '', who: '', lanes: [], boot: '', background: false, attempt: 0 },
  ...{ epoch: undefined, expiresAt: undefined, expiresAtBoot: undefined, task: undefined, step: undefined },
  ...{ outcome: undefined, finishedAt: undefined, ackedAt: undefined },
};

export function factsOf({ fleet: _, tag: __, epoch, ...row }: Row): string {
  const facts = { ...row, epoch: epoch?.toString() };
  const said = Object.entries(facts).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(USUAL[name]));
  return JSON.stringify(Object.fromEntries(said));
}

function rowOf(fleet: unknown, tag: unknown, facts: string): Row {
  const { epoch, ...row } = JSON.parse(facts);
  return { ...USUAL, ...row, fleet, tag, epoch: epoch === undefined ? undefined : BigInt(epoch) } as Row;
}

/** @throws AgentError `journal.newer_schema`; Error when there is none */
export function checkSchema(db: DatabaseSync): void {
  const version = readMeta(db, 'schema');
  if (Number.parseInt(version, 10) <= SCHEMA_MAJOR) return;
  throw new AgentError('journal.newer_schema', {
    problem: `the journal of instructions is of schema ${version}, this program knows ${SCHEMA_VERSION}`,
  });
}

/** @throws Error when there is none */
export function readMeta(db: DatabaseSync, name: string): string {
  const value = db.prepare('SELECT value FROM meta WHERE name = ?').get(name)?.value;
  if (typeof value !== 'string') throw new Error(`it has no ${name}`);
  return value;
}

export function writeMeta(db: DatabaseSync, name: string, value: string): void {
  db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(name, value);
}
