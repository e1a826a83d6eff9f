import { instructionKey, isFinished, type KeptRow, replyPrefix, requestPrefix } from '../../domain/dispatch/model.js';
import { overdue } from '../../domain/dispatch/retention.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { type ControlStore, MAX_OPERATIONS, type Write } from '../../ports/store/control-store.js';
import type { InstructionBook } from './instruction-book.js';

const SWEEP_MS = 60_000;
/** Of one sweep; the rest waits for the next. */
const MOST_AT_ONCE = 1_000;

export interface FinishedSweepParts {
  readonly store: ControlStore;
  readonly book: InstructionBook;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Removes finished instructions with their results, once a minute. */
export class FinishedSweep {
  readonly #parts: FinishedSweepParts;
  #running: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  constructor(parts: FinishedSweepParts) {
    this.#parts = parts;
  }

  start(): void {
    const stop = new AbortController();
    this.#running ??= { stop, done: this.#sweepForEver(stop.signal) };
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort();
    await running?.done;
  }

  async #sweepForEver(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(SWEEP_MS, { signal }).catch(() => {});
      try {
        await this.#sweep(signal);
      } catch (error) {
        if (!signal.aborted) logger.warn('finished instructions could not be removed', { error });
      }
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { book, clock } = this.#parts;
    const finished = [...book.rows()].filter(({ row }) => isFinished(row));
    for (const kept of overdue(finished, clock.now()).slice(0, MOST_AT_ONCE)) {
      if (signal.aborted) return;
      await this.#remove(kept, signal);
    }
  }

  /** What it said and what came of it first, so that a row that is gone has left nothing; also parts of a result that was never whole. */
  async #remove({ row, version }: KeptRow, signal: AbortSignal): Promise<void> {
    const { store } = this.#parts;
    const prefixes = [requestPrefix(row.nid, row.tag), replyPrefix(row.nid, row.tag)];
    const bodies = await Promise.all(prefixes.map((prefix) => store.list(prefix, { signal })));
    const writes: Write[] = bodies.flat().map(({ key }) => ({ key, value: null }));
    const key = instructionKey(row.nid, row.tag);
    const limit = MAX_OPERATIONS - 2;
    while (writes.length > limit) await store.commit([], writes.splice(0, limit), { signal });
    await store.commit([{ key, version }], [...writes, { key, value: null }], { signal });
  }
}
