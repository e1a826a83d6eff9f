import { type Entry, type Revision, revision } from './model.js';
import { RevisionQueue } from './revision-queue.js';

/** What watchers share in memory: 16 MiB are the services of a large fleet changed once over (20,000 of 800 bytes). */
export const RING_SIZE = 16 * 1024 * 1024;
/** Bounds the overhead of small entries: about 400 bytes of objects each, 6.4 MiB. */
export const RING_ENTRIES = 16_384;

/** `size` as in `EntryRecord`. */
export interface SizedEntry {
  readonly entry: Entry;
  readonly size: number;
}

/** The newest entries. The newest one is always held, whatever its size, so that a watcher at the head never needs the disk. */
export class EntryRing {
  readonly #entries: RevisionQueue<SizedEntry>;
  readonly #limits: { readonly size: number; readonly entries: number };
  #size = 0;

  constructor(first: Revision, limits = { size: RING_SIZE, entries: RING_ENTRIES }) {
    this.#entries = new RevisionQueue(first);
    this.#limits = limits;
  }

  get first(): Revision {
    return this.#entries.first;
  }

  /** Entries of the ring whose revision is `place`; undefined when it has left, or is still to come. */
  at(place: Revision): Entry | undefined {
    return this.#entries.at(place)?.entry;
  }

  push({ entry, size }: SizedEntry): void {
    if (entry.revision !== this.#entries.first + BigInt(this.#entries.length))
      throw new RangeError(`entry ${entry.revision} does not follow in the ring`);
    this.#entries.push({ entry, size });
    this.#size += size;
    while (this.#entries.length > 1 && (this.#size > this.#limits.size || this.#entries.length > this.#limits.entries))
      this.#drop();
  }

  /** Forgets what retention has dropped. */
  dropBefore(minimum: Revision): void {
    while (this.#entries.length > 0 && this.#entries.first < minimum) this.#drop();
  }

  #drop(): void {
    this.#size -= this.#entries.dropOldest()?.size ?? 0;
  }
}

/** The ring's first revision for a log that ends at `head` and gives its newest entries again after a restart. */
export function ringStart(newest: readonly SizedEntry[], head: Revision): Revision {
  return newest[0]?.entry.revision ?? revision(head + 1n);
}
