import { RETAINED_CHANGES, RETAINED_MS, type Revision, revision } from './model.js';
import { RevisionQueue } from './revision-queue.js';

/** So many entries more than came go per commit at most, so that the first one after an idle day is not slow. */
export const DROPPED_PER_COMMIT = 1_000;

/** What retention and the pace of watchers need to know of an entry. */
export interface RetainedEntry {
  /** Log time. */
  readonly time: number;
  readonly changes: number;
  readonly size: number;
  readonly requestId: string | undefined;
}

export interface RetentionLimits {
  readonly changes: number;
  readonly ms: number;
}

const LIMITS: RetentionLimits = { changes: RETAINED_CHANGES, ms: RETAINED_MS };

interface Kept extends RetainedEntry {
  /** Sums up to and with this entry, since the index was made. */
  readonly endChanges: number;
  readonly endSize: number;
  /** Monotonic clock at which it became readable. */
  readonly at: number;
}

/** The entries that can still be read, without their content: about 100 bytes each, 10 MiB at most. */
export class RetainedEntries {
  readonly #kept: RevisionQueue<Kept>;
  readonly #requests = new Map<string, Revision>();
  readonly #limits: RetentionLimits;
  #changes = 0;
  #size = 0;
  #droppedSize = 0;

  /** `first` is the oldest entry that is retained. */
  constructor(first: Revision, limits = LIMITS) {
    this.#kept = new RevisionQueue(first);
    this.#limits = limits;
  }

  /** The oldest revision that can be read; the next one to come in an empty log. */
  get minimum(): Revision {
    return this.#kept.first;
  }

  answered(requestId: string): Revision | undefined {
    return this.#requests.get(requestId);
  }

  /** `at` is the monotonic clock. */
  push(entry: RetainedEntry, at: number): void {
    this.#changes += entry.changes;
    this.#size += entry.size;
    if (entry.requestId !== undefined)
      this.#requests.set(entry.requestId, revision(this.#kept.first + BigInt(this.#kept.length)));
    this.#kept.push({ ...entry, endChanges: this.#changes, endSize: this.#size, at });
  }

  /**
   * The minimum once `coming` are appended: entries go that are older than the newest 100,000 changes or than 24 h of log time,
   * whole, never the last one. Changes nothing, so that it can be decided before the commit.
   */
  minimumAfter(coming: readonly RetainedEntry[]): Revision {
    const last = coming.at(-1);
    if (last === undefined) return this.minimum;
    const changes = coming.reduce((sum, entry) => sum + entry.changes, this.#changes);
    let minimum = this.minimum;
    for (let dropped = 0; dropped < DROPPED_PER_COMMIT + coming.length; dropped += 1) {
      const oldest = this.#kept.at(minimum);
      if (oldest === undefined) break;
      const tooMany = changes - oldest.endChanges >= this.#limits.changes;
      const tooOld = oldest.time < last.time - this.#limits.ms;
      if (!tooMany && !tooOld) break;
      minimum = revision(minimum + 1n);
    }
    return minimum;
  }

  dropBefore(minimum: Revision): void {
    while (this.#kept.length > 1 && this.#kept.first < minimum) {
      const place = this.#kept.first;
      const dropped = this.#kept.dropOldest();
      if (dropped === undefined) return;
      this.#droppedSize = dropped.endSize;
      // A newer entry never has the same id while this one is retained.
      if (dropped.requestId !== undefined && this.#requests.get(dropped.requestId) === place)
        this.#requests.delete(dropped.requestId);
    }
  }

  /** Since when a reader at `place` holds back more than `size`, by the monotonic clock; undefined while it does not. */
  behindSince(place: Revision, size: number): number | undefined {
    const read = this.#kept.at(place)?.endSize ?? (place < this.minimum ? this.#droppedSize : this.#size);
    if (this.#size - read <= size) return undefined;
    let low = Math.max(0, Number(place - this.minimum) + 1);
    let high = this.#kept.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const end = this.#kept.at(revision(this.minimum + BigInt(middle)))?.endSize ?? 0;
      if (end - read > size) high = middle;
      else low = middle + 1;
    }
    return this.#kept.at(revision(this.minimum + BigInt(low)))?.at;
  }
}
