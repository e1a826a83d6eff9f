import { type Revision, revision } from './model.js';

/** Removed places are given back when they are half of the array and at least this many: amortised O(1). */
const COMPACT_AT = 1024;

/** Items of consecutive revisions, pushed at the newer end and dropped at the older one. */
export class RevisionQueue<T> {
  #items: T[] = [];
  #start = 0;
  #first: bigint;

  /** `first` is the revision of the first item to come. */
  constructor(first: Revision) {
    this.#first = first;
  }

  /** Revision of the oldest item, or of the next one when there is none. */
  get first(): Revision {
    return revision(this.#first);
  }

  get length(): number {
    return this.#items.length - this.#start;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Undefined outside the queue. */
  at(place: Revision): T | undefined {
    return place < this.#first ? undefined : this.#items[this.#start + Number(place - this.#first)];
  }

  oldest(): T | undefined {
    return this.#items[this.#start];
  }

  dropOldest(): T | undefined {
    const item = this.#items[this.#start];
    if (item === undefined) return undefined;
    this.#start += 1;
    this.#first += 1n;
    if (this.#start >= COMPACT_AT && this.#start * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#start);
      this.#start = 0;
    }
    return item;
  }
}
