import type { DraftBase } from './draft.js';
import type { EntryHead, EntryRecord } from './entry.js';
import type { KeyState } from './judge.js';
import {
  type Cursor,
  type Entry,
  type LogId,
  type LogKey,
  type Revision,
  revision,
  type Snapshot,
  type SnapshotItem,
  ZERO_DIGEST,
  ZERO_REVISION,
} from './model.js';
import { RetainedEntries, type RetainedEntry } from './retention.js';
import { EntryRing, ringStart, type SizedEntry } from './ring.js';

/** What a store gives back after a restart. */
export interface StoredState {
  readonly logId: LogId;
  readonly last: EntryHead;
  readonly items: Iterable<SnapshotItem>;
  /** Oldest retained revision; `last` + 1 in an empty log. */
  readonly minimum: Revision;
  /** All that are retained, from `minimum`. */
  readonly retained: Iterable<RetainedEntry>;
  /** The end of them with their content, for the ring. */
  readonly newest: readonly SizedEntry[];
}

export const EMPTY_HEAD: EntryHead = { revision: ZERO_REVISION, digest: ZERO_DIGEST, time: 0 };

export function emptyState(logId: LogId): StoredState {
  return { logId, last: EMPTY_HEAD, items: [], minimum: revision(1n), retained: [], newest: [] };
}

/** What a holder of the log knows of it: values, ring and index change in one synchronous step per batch (engine.md E13). */
export class LogState implements DraftBase {
  readonly logId: LogId;
  readonly #values = new Map<LogKey, KeyState>();
  readonly #ring: EntryRing;
  readonly #retained: RetainedEntries;
  #sorted: readonly LogKey[] | undefined;
  #last: EntryHead;

  /** `at` is the monotonic clock. */
  constructor(stored: StoredState, at: number) {
    this.logId = stored.logId;
    this.#last = stored.last;
    for (const { key, value, revision } of stored.items) this.#values.set(key, { value, revision });
    this.#retained = new RetainedEntries(stored.minimum);
    for (const entry of stored.retained) this.#retained.push(entry, at);
    this.#ring = new EntryRing(ringStart(stored.newest, stored.last.revision));
    for (const record of stored.newest) this.#ring.push(record);
  }

  get last(): EntryHead {
    return this.#last;
  }

  get revision(): Revision {
    return this.#last.revision;
  }

  get head(): Cursor {
    return { logId: this.logId, revision: this.#last.revision, digest: this.#last.digest };
  }

  get minimum(): Revision {
    return this.#retained.minimum;
  }

  get(key: LogKey): KeyState | undefined {
    return this.#values.get(key);
  }

  answered(requestId: string): Revision | undefined {
    return this.#retained.answered(requestId);
  }

  /** The entry, if the ring has it. */
  recent(place: Revision): Entry | undefined {
    return this.#ring.at(place);
  }

  behindSince(place: Revision, size: number): number | undefined {
    return this.#retained.behindSince(place, size);
  }

  /** The oldest revision once `records` are appended; to be stored with them. */
  minimumAfter(records: readonly EntryRecord[]): Revision {
    return this.#retained.minimumAfter(records.map(retainedEntry));
  }

  /** Only after the commit. `at` is the monotonic clock. */
  append(records: readonly EntryRecord[], minimum: Revision, at: number): void {
    for (const record of records) {
      this.#fold(record.entry);
      this.#ring.push(record);
      this.#retained.push(retainedEntry(record), at);
      this.#last = record.entry;
    }
    this.#retained.dropBefore(minimum);
    this.#ring.dropBefore(minimum);
  }

  snapshot(prefix: string): Snapshot {
    const items: SnapshotItem[] = [];
    this.#sorted ??= [...this.#values.keys()].sort();
    for (let i = lowerBound(this.#sorted, prefix); i < this.#sorted.length; i += 1) {
      const key = this.#sorted[i];
      if (key === undefined || !key.startsWith(prefix)) break;
      const state = this.#values.get(key);
      if (state !== undefined) items.push({ key, value: state.value, revision: state.revision });
    }
    return { cursor: this.head, time: this.#last.time, items };
  }

  #fold({ revision, changes }: Entry): void {
    for (const { key, value } of changes) {
      if (value === null) this.#values.delete(key);
      else {
        if (!this.#values.has(key)) this.#sorted = undefined;
        this.#values.set(key, { value, revision });
      }
    }
  }
}

export function retainedEntry({ entry, size }: SizedEntry): RetainedEntry {
  return { time: entry.time, changes: entry.changes.length, size, requestId: entry.requestId };
}

/** Index of the first key that is not before `prefix`. */
function lowerBound(keys: readonly string[], prefix: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] ?? '') < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}
