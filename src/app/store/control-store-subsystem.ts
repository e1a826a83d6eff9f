import type { OwnedControlStore } from '../../ports/store/control-store.js';
import type { Subsystem } from '../agent/subsystem.js';

/** The store that this process keeps itself: open while the agent runs. */
export class ControlStoreSubsystem implements Subsystem {
  readonly name = 'control-store';
  readonly #store: OwnedControlStore;

  constructor(store: OwnedControlStore) {
    this.#store = store;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#store.open({ signal });
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#store.close();
  }
}
