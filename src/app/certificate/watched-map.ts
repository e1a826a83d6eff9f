import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';

export interface WatchedMapConfig<T> {
  readonly store: ControlStore;
  readonly prefix: string;
  /** @throws whatever; the value is then passed over and reported */
  readonly decode: (key: string, text: string) => T;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  /** Called for each key whose value is new, has changed or is gone. */
  readonly changed?: (key: string, value: T | undefined) => void;
}

/** A revocation is to be known within a second: a store that is back is not to be waited for much longer. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/**
 * What stands below a prefix of the store, always at hand. While the store is out of reach it is the last known set, and it is brought
 * up to date as one step when the store is back.
 */
export class WatchedMap<T> {
  readonly #config: WatchedMapConfig<T>;
  readonly #loaded = Promise.withResolvers<void>();
  readonly #values = new Map<string, T>();
  readonly #versions = new Map<string, bigint>();
  #isLoaded = false;

  constructor(config: WatchedMapConfig<T>) {
    this.#config = config;
  }

  get(key: string): T | undefined {
    return this.#values.get(key);
  }

  get size(): number {
    return this.#values.size;
  }

  values(): Iterable<T> {
    return this.#values.values();
  }

  /** Whether it was known once. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** Resolves when it is known for the first time. */
  loaded(): Promise<void> {
    return this.#loaded.promise;
  }

  /** Follows the store until `signal` ends, then resolves. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, logger, prefix, random } = this.#config;
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.#watch(signal, () => {
          if (failures > 0) logger.info(`${prefix}: the store is watched again`, { failures });
          failures = 0;
        });
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        // Once: an outage of hours is thousands of tries.
        if (failures === 1) logger.warn(`${prefix}: the store cannot be watched; what was known of it stands`, { error });
      }
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
      await clock.sleep(pause / 2 + (pause / 2) * random(), { signal }).catch(() => {});
    }
  }

  async #watch(signal: AbortSignal, begun: () => void): Promise<void> {
    // Until all of it is there it is kept aside: what it lacks is gone, and what it has not given yet is not.
    let found: Map<string, StoreChange> | undefined = new Map();
    const first = () => {
      this.#replace(found ?? new Map());
      found = undefined;
      begun();
    };
    for await (const changes of this.#config.store.watch(this.#config.prefix, { signal, first })) {
      for (const change of changes) {
        if (found === undefined) this.#put(change);
        else found.set(change.key, change);
      }
    }
  }

  #replace(found: ReadonlyMap<string, StoreChange>): void {
    const gone = [...this.#versions].filter(([key]) => !found.has(key));
    for (const [key, version] of gone) this.#put({ key, value: undefined, version });
    for (const change of found.values()) this.#put(change);
    this.#isLoaded = true;
    this.#loaded.resolve();
  }

  #put({ key, value: text, version }: StoreChange): void {
    if (text !== undefined && this.#versions.get(key) === version) return;
    const value = text === undefined ? undefined : this.#decoded(key, text);
    if (text === undefined) this.#versions.delete(key);
    else this.#versions.set(key, version);
    if (value === undefined) this.#values.delete(key);
    else this.#values.set(key, value);
    this.#config.changed?.(key, value);
  }

  #decoded(key: string, text: string): T | undefined {
    try {
      return this.#config.decode(key, text);
    } catch (error) {
      this.#config.logger.error(`${key}: cannot be read and is passed over`, { error });
      return undefined;
    }
  }
}
