import { AgentError } from '../kernel/errors.js';
import {
  type Change,
  type Digest,
  type DigestOf,
  digest,
  ENTRY_VERSION,
  type Entry,
  logKey,
  type Revision,
  revision,
} from './model.js';

/** Where an entry goes on: its predecessor, or the beginning. */
export interface EntryHead {
  readonly revision: Revision;
  readonly digest: Digest;
  /** Log time; 0 at the beginning. */
  readonly time: number;
}

/**
 * An entry with the text that its digest is taken of, which is also the form in which it is stored. `size` is the text's length;
 * for ASCII JSON, which most of it is, that is bytes.
 */
export interface EntryRecord {
  readonly entry: Entry;
  readonly text: string;
  readonly size: number;
}

/** What the beginning of the text says, so that a reader of 100,000 entries need not parse the changes. */
export interface EntryFacts {
  readonly version: number;
  readonly revision: Revision;
  readonly time: number;
  readonly previousDigest: Digest;
  readonly changes: number;
  readonly requestId: string | undefined;
}

/** Never less than the predecessor's, whatever the proposer's clock does (engine.md E19). */
export function entryTime(now: number, previous: number): number {
  return Math.max(Math.trunc(now), previous);
}

/**
 * The entry after `head`. Its text is `[version,"revision",time,"previous digest",count,request id,[[key,value],...]]`.
 * @throws AgentError `log.too_large` when the text is longer than a string may be (2^29 characters, by escapes alone)
 */
export function nextEntry(
  head: EntryHead,
  content: { readonly changes: readonly Change[]; readonly requestId: string | undefined },
  now: number,
  digestOf: DigestOf,
): EntryRecord {
  const facts = {
    version: ENTRY_VERSION,
    revision: revision(head.revision + 1n),
    time: entryTime(now, head.time),
    previousDigest: head.digest,
    requestId: content.requestId,
    changes: content.changes,
  };
  const text = canonicalText(facts);
  return { entry: { ...facts, digest: digestOf(text) }, text, size: text.length };
}

function canonicalText(entry: Omit<Entry, 'digest'>): string {
  try {
    return JSON.stringify([
      entry.version,
      String(entry.revision),
      entry.time,
      entry.previousDigest,
      entry.changes.length,
      entry.requestId ?? null,
      entry.changes.map(({ key, value }) => [key, value]),
    ]);
  } catch (cause) {
    throw new AgentError(
      'log.too_large',
      { problem: `${entry.changes.length} changes are more than one text can hold` },
      { cause },
    );
  }
}

const HEAD = /^\[(\d{1,9}),"(\d{1,20})",(\d{1,16}),"([0-9a-f]{64})",(\d{1,7}),(null|"(?:[^"\\]|\\.)*"),\[/;

/**
 * @throws AgentError `log.newer_schema` for an entry of a newer version, `log.corrupt` for what is no entry
 */
export function readEntryFacts(text: string): EntryFacts {
  const [, version, number, time, previous, changes, requestId] = HEAD.exec(text) ?? [];
  if (previous === undefined || requestId === undefined) throw notAnEntry(text);
  if (Number(version) > ENTRY_VERSION)
    throw new AgentError('log.newer_schema', {
      problem: `an entry is of version ${version}, this program knows ${ENTRY_VERSION}`,
    });
  const id: unknown = JSON.parse(requestId);
  return {
    version: Number(version),
    revision: revision(BigInt(number ?? '')),
    time: Number(time),
    previousDigest: digest(previous),
    changes: Number(changes),
    requestId: typeof id === 'string' ? id : undefined,
  };
}

/**
 * The entry whose text was found to have `ownDigest`. Nothing but what `nextEntry` made is an entry.
 * @throws AgentError `log.newer_schema`, `log.corrupt`
 */
export function parseEntry(text: string, ownDigest: Digest): Entry {
  const facts = readEntryFacts(text);
  const parsed: unknown = parseJson(text);
  const pairs: unknown = Array.isArray(parsed) ? parsed[6] : undefined;
  if (!Array.isArray(pairs) || pairs.length !== facts.changes) throw notAnEntry(text);
  return { ...facts, digest: ownDigest, changes: pairs.map((pair) => change(pair, text)) };
}

function change(pair: unknown, text: string): Change {
  const [key, value]: readonly unknown[] = Array.isArray(pair) ? pair : [];
  if (typeof key !== 'string' || (typeof value !== 'string' && value !== null)) throw notAnEntry(text);
  return { key: logKey(key), value };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notAnEntry(text);
  }
}

function notAnEntry(text: string): AgentError {
  return new AgentError('log.corrupt', { problem: 'this is no log entry', text: text.slice(0, 80) });
}
