import { revision } from '../../src/domain/log/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Resync, ResyncOutcome } from '../../src/ports/driving/resync.js';

/** A view whose control plane answers at once, never, or with a state that is held back until it is accepted. */
export class FakeResync implements Resync {
  held: string | undefined;
  isReachable = true;
  readonly #revision = revision(7n);

  async resync({ accept }: { readonly accept: boolean }, { signal }: CallOptions): Promise<ResyncOutcome> {
    signal.throwIfAborted();
    if (!this.isReachable) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    }
    if (accept) this.held = undefined;
    if (this.held !== undefined) return { outcome: 'held', reason: this.held };
    return { outcome: 'applied', revision: this.#revision };
  }
}
