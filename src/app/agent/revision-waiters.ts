import type { Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';

/** Who waits for something to have come as far as a revision. */
export class RevisionWaiters {
  readonly #waiters = new Set<{ readonly revision: Revision; readonly resolve: () => void }>();

  /** Resolves at the first `reached` that is not below `revision`; rejects on abort with the signal's reason. */
  async wait(revision: Revision, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { revision, resolve };
    const onAbort = () => reject(signal.reason);
    this.#waiters.add(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      this.#waiters.delete(waiter);
      signal.removeEventListener('abort', onAbort);
    }
  }

  reached(revision: Revision): void {
    for (const waiter of this.#waiters) if (revision >= waiter.revision) waiter.resolve();
  }
}
