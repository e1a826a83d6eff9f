import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Condition, OwnedControlStore, StoreChange, StoredValue, Write } from '../../ports/store/control-store.js';
import { type CallFigures, CallMeter } from './call-meter.js';

/** A control plane's store that counts and times what it is asked. */
export class MeteredStore implements OwnedControlStore {
  readonly #store: OwnedControlStore;
  readonly #meter: CallMeter<'get' | 'list' | 'commit'>;

  constructor(store: OwnedControlStore, clock: Clock) {
    this.#store = store;
    this.#meter = new CallMeter(['get', 'list', 'commit'], clock);
  }

  figures(): CallFigures {
    return this.#meter.figures();
  }

  open(options: CallOptions): Promise<void> {
    return this.#store.open(options);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  get(key: string, options: CallOptions): Promise<StoredValue | undefined> {
    return this.#meter.measure('get', options, () => this.#store.get(key, options));
  }

  list(prefix: string, options: CallOptions): Promise<readonly StoredValue[]> {
    return this.#meter.measure('list', options, () => this.#store.list(prefix, options));
  }

  commit(conditions: readonly Condition[], writes: readonly Write[], options: CallOptions): Promise<bigint | undefined> {
    return this.#meter.measure('commit', options, () => this.#store.commit(conditions, writes, options));
  }

  watch(prefix: string, options: CallOptions & { readonly first?: () => void }): AsyncIterable<readonly StoreChange[]> {
    return this.#store.watch(prefix, options);
  }

  problems(): readonly StatusProblem[] {
    return this.#store.problems();
  }
}
