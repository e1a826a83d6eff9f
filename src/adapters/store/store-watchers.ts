import { AgentError } from '../../domain/kernel/errors.js';
import type { StoreChange, StoredValue } from '../../ports/store/control-store.js';

/** Of changes that wait for one reader: a few seconds of a busy control plane. More ends its watch, and it begins again. */
const MOST_WAITING = 100_000;

type Batch = readonly StoreChange[];

/** Who watches one store. Every commit is given to all of them in one step, so that none misses one. */
export class StoreWatchers {
  readonly #running = new Set<StoreWatcher>();

  /** Sees every commit from now on. */
  add(prefix: string, signal: AbortSignal): StoreWatcher {
    const watcher = new StoreWatcher(prefix, signal, () => this.#running.delete(watcher));
    this.#running.add(watcher);
    return watcher;
  }

  /** To be called in the order of versions, before whoever committed is answered. */
  changed(changes: Batch): void {
    for (const watcher of this.#running) watcher.push(changes);
  }

  /** Ends all of them with `store.unavailable`. */
  end(problem: string): void {
    for (const watcher of this.#running) watcher.fail(problem);
  }
}

/** One reader: what waits for it, in order. */
export class StoreWatcher {
  readonly #prefix: string;
  readonly #signal: AbortSignal;
  readonly #gone: () => void;
  #waiting: Batch[] = [];
  #count = 0;
  #problem: string | undefined;
  #wake: () => void = () => {};

  constructor(prefix: string, signal: AbortSignal, gone: () => void) {
    this.#prefix = prefix;
    this.#signal = signal;
    this.#gone = gone;
  }

  push(changes: Batch): void {
    const mine = changes.filter(({ key }) => key.startsWith(this.#prefix));
    if (mine.length === 0 || this.#problem !== undefined) return;
    this.#count += mine.length;
    this.#waiting.push(mine);
    if (this.#count > MOST_WAITING) this.fail(`more than ${MOST_WAITING} changes wait to be read`);
    this.#wake();
  }

  fail(problem: string): void {
    this.#problem ??= problem;
    this.#wake();
  }

  /**
   * `present`, which is everything up to `version`, then what was pushed after that, until abort.
   * @throws AgentError `store.unavailable`
   */
  async *read(present: readonly StoredValue[], version: bigint, first: () => void): AsyncGenerator<Batch, void, undefined> {
    const onAbort = () => this.#wake();
    this.#signal.addEventListener('abort', onAbort);
    try {
      if (present.length > 0 && !this.#signal.aborted) yield inOrder(present);
      if (!this.#signal.aborted) first();
      for (;;) {
        const batch = await this.#next();
        if (batch === undefined) return;
        // It was added before it was known what is present, so that the two overlap.
        if (batch.some((change) => change.version > version)) yield batch;
      }
    } finally {
      this.#signal.removeEventListener('abort', onAbort);
      this.close();
    }
  }

  /** It is told nothing more. Safe twice. */
  close(): void {
    this.#gone();
    this.#waiting = [];
  }

  async #next(): Promise<Batch | undefined> {
    for (;;) {
      if (this.#signal.aborted) return undefined;
      if (this.#problem !== undefined)
        throw new AgentError('store.unavailable', { problem: `the watch has ended: ${this.#problem}` });
      const batch = this.#waiting.shift();
      if (batch !== undefined) {
        this.#count -= batch.length;
        return batch;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function inOrder(present: readonly StoredValue[]): Batch {
  return [...present].sort((a, b) => (a.version < b.version ? -1 : a.version > b.version ? 1 : 0));
}
