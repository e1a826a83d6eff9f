import {
  type OutboxEntry,
  type OutboxRecord,
  type OutboxSequence,
  type OutboxStats,
  outboxSequence,
} from '../../domain/outbox/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Outbox } from '../../ports/outbox/outbox.js';

/** A few minutes of a busy node's events. */
const defaultCapacity = 4096;

/** Holds the newest `capacity` records; the oldest go first and are counted. Appending and confirming one cost O(1). Ends with the process. */
export class MemoryOutbox implements Outbox {
  readonly #capacity: number;
  /** The record with number n stands at n modulo the capacity. */
  readonly #ring: (OutboxRecord | undefined)[] = [];
  readonly #waiters = new Set<() => void>();
  /** The held ones are #oldest up to, not with, #next. */
  #oldest = 1n;
  #next = 1n;
  #dropped = 0n;

  /** @throws RangeError when `capacity` is no positive whole number */
  constructor(capacity: number = defaultCapacity) {
    this.#capacity = positive(capacity, 'capacity');
  }

  async append(entry: OutboxEntry, { signal }: CallOptions): Promise<OutboxSequence> {
    signal.throwIfAborted();
    if (this.#depth() === this.#capacity) {
      this.#oldest++;
      this.#dropped++;
    }
    const sequence = outboxSequence(this.#next++);
    this.#ring[this.#slot(sequence)] = { ...entry, sequence };
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
    return sequence;
  }

  async read(after: OutboxSequence, limit: number, { signal }: CallOptions): Promise<readonly OutboxRecord[]> {
    signal.throwIfAborted();
    const first = after + 1n < this.#oldest ? this.#oldest : after + 1n;
    const end = first + BigInt(positive(limit, 'limit'));
    const records: OutboxRecord[] = [];
    for (let sequence = first; sequence < end && sequence < this.#next; sequence++) {
      const record = this.#ring[this.#slot(sequence)];
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  async confirm(upTo: OutboxSequence, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (upTo >= this.#next) throw new RangeError(`no record has had the number ${upTo}, the next is ${this.#next}`);
    for (; this.#oldest <= upTo; this.#oldest++) this.#ring[this.#slot(this.#oldest)] = undefined;
  }

  async changed(after: OutboxSequence, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#next > after + 1n) return;
    await new Promise<void>((resolve, reject) => {
      const settle = (finish: () => void) => {
        this.#waiters.delete(wake);
        signal.removeEventListener('abort', abort);
        finish();
      };
      // Whoever waits for a number that is further away waits on.
      const wake = () => (this.#next > after + 1n ? settle(resolve) : this.#waiters.add(wake));
      const abort = () => settle(() => reject(signal.reason));
      this.#waiters.add(wake);
      signal.addEventListener('abort', abort);
    });
  }

  async flush({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
  }

  stats(): OutboxStats {
    return {
      depth: this.#depth(),
      capacity: this.#capacity,
      dropped: this.#dropped,
      nextSequence: outboxSequence(this.#next),
    };
  }

  #depth(): number {
    return Number(this.#next - this.#oldest);
  }

  #slot(sequence: bigint): number {
    return Number(sequence % BigInt(this.#capacity));
  }
}

function positive(value: number, name: string): number {
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${name} is no positive whole number: ${value}`);
  return value;
}
