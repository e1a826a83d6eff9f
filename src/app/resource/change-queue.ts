import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';

/** Between a source that waits for nobody and one reader. A reader that lets more than `most` wait loses all of them, and is told so. */
export class ChangeQueue<T> {
  readonly #most: number;
  #waiting: T[] = [];
  #overflown = false;
  #wake: () => void = () => {};

  constructor(most: number) {
    this.#most = most;
  }

  push(items: readonly T[]): void {
    if (this.#overflown || items.length === 0) return;
    this.#overflown = this.#waiting.length + items.length > this.#most;
    if (this.#overflown) this.#waiting = [];
    else for (const item of items) this.#waiting.push(item);
    this.#wake();
  }

  /**
   * All that waits, as soon as something does; empty on abort.
   * @throws AgentError `log.slow`
   */
  async take({ signal }: CallOptions): Promise<readonly T[]> {
    if (this.#waiting.length === 0 && !this.#overflown && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener('abort', this.#wake, { once: true });
      });
      signal.removeEventListener('abort', this.#wake);
    }
    if (this.#overflown) throw new AgentError('log.slow', { problem: `more than ${this.#most} changes wait to be read` });
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }
}
