import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';
import { PrefixView } from '../store/prefix-view.js';

const cordonPrefix = 'cordon/';

export interface CordonParts {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The nodes that instructions are held back from. */
export class Cordons {
  readonly #parts: CordonParts;
  readonly #view: PrefixView;
  readonly #cordoned = new Set<Nid>();
  readonly #listeners = new Set<(nid: Nid) => void>();

  constructor(parts: CordonParts) {
    this.#parts = parts;
    this.#view = new PrefixView({ ...parts, prefix: cordonPrefix, changed: (changes) => this.#changed(changes) });
  }

  start(): void {
    this.#view.start();
  }

  stop(): Promise<void> {
    return this.#view.stop();
  }

  /** Whether all were known once. */
  get hasLoaded(): boolean {
    return this.#view.hasLoaded;
  }

  /** Resolves when it is known who is cordoned: before that nobody seems to be. */
  loaded(options: CallOptions): Promise<void> {
    return this.#view.loaded(options);
  }

  /** Resolves when it holds what there is. @throws AgentError `store.unavailable` after 5 s */
  current(options: CallOptions): Promise<void> {
    return this.#view.reached(0n, options);
  }

  has(nid: Nid): boolean {
    return this.#cordoned.has(nid);
  }

  onChange(listener: (nid: Nid) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Known here when it resolves. @throws AgentError `store.unavailable`, `store.outcome_unknown` */
  async set(nid: Nid, cordoned: boolean, options: CallOptions): Promise<void> {
    if (this.has(nid) === cordoned) return;
    const { store, clock } = this.#parts;
    const value = cordoned ? JSON.stringify({ at: clock.now() }) : null;
    const version = await store.commit([], [{ key: `${cordonPrefix}${nid}`, value }], options);
    // One that was taken back elsewhere in this moment is no change that anybody is told of.
    if (this.has(nid) !== cordoned) await this.#view.reached(version ?? 0n, options);
  }

  #changed(changes: readonly StoreChange[]): void {
    for (const { key, value } of changes) {
      const nid = key.slice(cordonPrefix.length) as Nid;
      if (value === undefined) this.#cordoned.delete(nid);
      else this.#cordoned.add(nid);
      for (const listener of this.#listeners) listener(nid);
    }
  }
}
