import type { Brand } from '../kernel/brand.js';

/** Number of an accepted proposal: 1, 2, 3 … without gaps, on every backend, never used twice. 0 is "before the first". */
export type Revision = Brand<bigint, 'Revision'>;
/** `kind/…`: segments of printable ASCII without spaces, separated by `/`. */
export type LogKey = Brand<string, 'LogKey'>;
/** Drawn when a log is made or restored; two logs never share one. */
export type LogId = Brand<string, 'LogId'>;
/** SHA-256 in hex of an entry's canonical bytes, which hold its predecessor's digest. */
export type Digest = Brand<string, 'Digest'>;

export const ZERO_REVISION = 0n as Revision;
/** The predecessor's digest in entry 1. */
export const ZERO_DIGEST = '0'.repeat(64) as Digest;

/** Version of the entry format; an entry of a newer one is not folded. */
export const ENTRY_VERSION = 1;

/** A proposal above either is refused; the arithmetic is that of the etcd backend's staging. */
export const MAX_CHANGES_PER_PROPOSAL = 200_000;
export const MAX_BYTES_PER_PROPOSAL = 256 * 1024 * 1024;

/** Whole entries older than the newest 100,000 changes or than 24 h are dropped, never the last entry. */
export const RETAINED_CHANGES = 100_000;
export const RETAINED_MS = 24 * 60 * 60 * 1000;

/** @throws RangeError when `value` is negative. */
export function revision(value: bigint): Revision {
  if (value < 0n) throw new RangeError(`not a revision: ${value}`);
  return value as Revision;
}

/** @throws RangeError when `text` is not a key. */
export function logKey(text: string): LogKey {
  if (text.length > 512 || !/^[!-.0-~]+(\/[!-.0-~]+)*$/.test(text))
    throw new RangeError(`not a log key: ${JSON.stringify(text)}`);
  return text as LogKey;
}

/** @throws RangeError when `text` is not a log id: 1 to 64 of a-z, 0-9 and `-`. */
export function logId(text: string): LogId {
  if (!/^[a-z0-9-]{1,64}$/.test(text)) throw new RangeError(`not a log id: ${JSON.stringify(text)}`);
  return text as LogId;
}

/** @throws RangeError when `text` is not a SHA-256 in lower-case hex. */
export function digest(text: string): Digest {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new RangeError(`not a digest: ${JSON.stringify(text)}`);
  return text as Digest;
}

/** SHA-256 of the text's UTF-8 bytes, passed in: the domain has no crypto. */
export type DigestOf = (text: string) => Digest;

/** One key's new value: canonical JSON text, or `null` for its removal. */
export interface Change {
  readonly key: LogKey;
  readonly value: string | null;
}

/** The proposal is refused unless `key` was last changed at `revision`; 0 means that the key is absent. */
export interface Precondition {
  readonly key: LogKey;
  readonly revision: Revision;
}

export interface Proposal {
  /** Each key at most once. Changes that change nothing are dropped; if none is left, no entry is made. */
  readonly changes: readonly Change[];
  readonly preconditions: readonly Precondition[];
  /** A proposal repeated with the id of a retained entry gets that entry's answer and does nothing. */
  readonly requestId?: string;
}

export type ProposeResult =
  | { readonly outcome: 'committed'; readonly revision: Revision }
  /** All of it was true already; `revision` is the head. */
  | { readonly outcome: 'unchanged'; readonly revision: Revision }
  | {
      readonly outcome: 'conflict';
      readonly key: LogKey;
      readonly expected: Revision;
      readonly actual: Revision;
    };

/** An accepted proposal. */
export interface Entry {
  readonly version: number;
  readonly revision: Revision;
  /** Log time, milliseconds since the Unix epoch; never less than the predecessor's. */
  readonly time: number;
  readonly previousDigest: Digest;
  readonly digest: Digest;
  readonly requestId: string | undefined;
  readonly changes: readonly Change[];
}

/** A place in one log. Continuing from it is refused unless the log still has that digest at that number. */
export interface Cursor {
  readonly logId: LogId;
  readonly revision: Revision;
  readonly digest: Digest;
}

export interface SnapshotItem {
  readonly key: LogKey;
  readonly value: string;
  /** Where the value was last changed. */
  readonly revision: Revision;
}

/** The values of a prefix as of exactly `cursor`. */
export interface Snapshot {
  readonly cursor: Cursor;
  /** Log time of the entry at the cursor; 0 in an empty log. */
  readonly time: number;
  readonly items: readonly SnapshotItem[];
}

/**
 * What a watcher is given: `previous` is the cursor's revision before it, so that a consumer can check that it missed nothing. A
 * watcher that may see only a part of the log gets entries with the changes of that part; there `previous` may be several revisions
 * back, the entry's `previousDigest` is the one at `previous`, and a bookmark may lead on.
 */
export type LogFrame =
  | { readonly kind: 'entry'; readonly previous: Revision; readonly entry: Entry }
  | {
      readonly kind: 'bookmark';
      readonly previous: Revision;
      readonly revision: Revision;
      /** Of the entry at `revision`. */
      readonly digest: Digest;
      readonly head: Revision;
      /** How long ago the server last knew its store to be current, milliseconds. */
      readonly ageMs: number;
    };
