import { AgentError } from '../../src/domain/kernel/errors.js';
import type { Inheritance, Successor } from '../../src/ports/agent/successor.js';
import type { CallOptions } from '../../src/ports/call-options.js';

/** A process that takes over as the test says. */
export class FakeSuccessor implements Successor {
  readonly pid = 4711;
  given: Inheritance | undefined;
  killed = 0;
  readonly #asks = Promise.withResolvers<void>();
  readonly #serves = Promise.withResolvers<void>();

  constructor() {
    for (const { promise } of [this.#asks, this.#serves]) promise.catch(() => {});
  }

  ask(): void {
    this.#asks.resolve();
  }

  serve(): void {
    this.#serves.resolve();
  }

  die(): void {
    const error = new AgentError('agent.successor_failed', { problem: 'it ended with 1' });
    this.#asks.reject(error);
    this.#serves.reject(error);
  }

  asks(options: CallOptions): Promise<void> {
    return within(this.#asks.promise, options);
  }

  give(inheritance: Inheritance): void {
    this.given = inheritance;
  }

  serves(options: CallOptions): Promise<void> {
    return within(this.#serves.promise, options);
  }

  async kill(): Promise<void> {
    this.killed++;
  }
}

function within(promise: Promise<void>, { signal }: CallOptions): Promise<void> {
  const aborted = new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  return Promise.race([promise, aborted]);
}
