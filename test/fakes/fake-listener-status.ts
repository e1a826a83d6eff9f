import type { ListenerId } from '../../src/domain/dataplane/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ListenerState, ListenerStatus } from '../../src/ports/dataplane/listener-status.js';

type Failed = Extract<ListenerState, { state: 'failed' }>;

/** Listeners that are as a test says, `pending` before. All is settled at once, unless it is held. */
export class FakeListenerStatus implements ListenerStatus {
  readonly #states = new Map<ListenerId, ListenerState>();
  #held: PromiseWithResolvers<void> | undefined;

  set(id: string, state: ListenerState): void {
    this.#states.set(id as ListenerId, state);
  }

  /** Nothing settles until `release`. */
  hold(): void {
    this.#held = Promise.withResolvers();
  }

  release(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  stateOf(id: ListenerId): ListenerState {
    return this.#states.get(id) ?? { state: 'pending' };
  }

  failed(): ReadonlyMap<ListenerId, Failed> {
    return new Map([...this.#states].flatMap(([id, state]) => (state.state === 'failed' ? [[id, state] as const] : [])));
  }

  async settled(_revision: unknown, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#held === undefined) return;
    const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    await Promise.race([this.#held.promise, aborted]);
  }
}
