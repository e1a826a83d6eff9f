import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';

/** The longest that a Node timer takes: 2^31 - 1 ms, 24.8 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Real time. A sleeper holds the process unless `unref` is set: a program that only waits would otherwise end in the middle of it.
 * The daemon has sockets that hold it, and may set it.
 */
export class SystemClock implements Clock {
  readonly #unref: boolean;

  constructor({ unref = false }: { readonly unref?: boolean } = {}) {
    this.#unref = unref;
  }

  now(): number {
    return Date.now();
  }

  monotonic(): number {
    return performance.now();
  }

  async sleep(ms: number, options: CallOptions): Promise<void> {
    let left = ms;
    do {
      await this.#sleepOnce(Math.min(left, LONGEST_TIMER_MS), options);
      left -= LONGEST_TIMER_MS;
    } while (left > 0);
  }

  #sleepOnce(ms: number, { signal }: CallOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      }, ms);
      if (this.#unref) timer.unref();
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
