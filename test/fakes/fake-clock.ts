import { setImmediate } from 'node:timers/promises';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Clock } from '../../src/ports/clock.js';

interface Sleeper {
  readonly due: number;
  wake(): void;
}

/** Time that passes only when it is told to. */
export class FakeClock implements Clock {
  readonly #sleepers = new Set<Sleeper>();
  readonly #start: number;
  #elapsed = 0;

  constructor(startMs = Date.UTC(2025, 0, 1)) {
    this.#start = startMs;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  async sleep(ms: number, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const settle = (finish: () => void) => {
        this.#sleepers.delete(sleeper);
        signal.removeEventListener('abort', abort);
        finish();
      };
      const abort = () => settle(() => reject(signal.reason));
      const sleeper = { due: this.#elapsed + ms, wake: () => settle(resolve) };
      this.#sleepers.add(sleeper);
      signal.addEventListener('abort', abort);
    });
  }

  /** Lets `ms` pass. Sleepers wake in the order of their time, and what each sets off is done before the next; `advance(0)` only lets everything settle. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await setImmediate();
    for (let next = this.#first(end); next !== undefined; next = this.#first(end)) {
      this.#elapsed = Math.max(this.#elapsed, next.due);
      next.wake();
      await setImmediate();
    }
    this.#elapsed = end;
  }

  #first(end: number): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (sleeper.due <= end && (first === undefined || sleeper.due < first.due)) first = sleeper;
    }
    return first;
  }
}
