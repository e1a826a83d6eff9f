import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';

const RETRY_LEAST_MS = 100;
const RETRY_MOST_MS = 10_000;
/** Whoever asks is told within 5 s that the store is out of reach (engine.md E10). */
const REACH_MS = 5_000;

export interface PrefixViewParts {
  readonly store: ControlStore;
  readonly prefix: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** In order; a key that is gone when the watch begins again is told as removed. Does not throw. */
  readonly changed: (changes: readonly StoreChange[]) => void;
}

interface Waiter {
  readonly version: bigint;
  readonly resolve: () => void;
}

/**
 * Follows all keys with one prefix, however often the watch has to begin again. One watch serves everybody: what it tells is handed on
 * in memory.
 */
export class PrefixView {
  readonly #parts: PrefixViewParts;
  readonly #versions = new Map<string, bigint>();
  #waiters: Waiter[] = [];
  #highest = 0n;
  #isCurrent = false;
  #hasLoaded = false;
  #running: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  constructor(parts: PrefixViewParts) {
    this.#parts = parts;
  }

  start(): void {
    const stop = new AbortController();
    this.#running ??= { stop, done: this.#follow(stop.signal) };
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort();
    await running?.done;
  }

  /** Whether it holds what the store holds, as far as it was told. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  /** Whether it has ever held what the store held. */
  get hasLoaded(): boolean {
    return this.#hasLoaded;
  }

  /** Resolves when it has held what the store held; waits as long as it takes. */
  async loaded(options: CallOptions): Promise<void> {
    if (!this.#hasLoaded) await this.#told(0n, options);
  }

  /**
   * Resolves when everything was told up to `version`, that of a commit under this prefix; 0: what there is.
   * @throws AgentError `store.unavailable` after 5 s
   */
  async reached(version: bigint, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#isCurrent && this.#highest >= version) return;
    const over = new AbortController();
    const ended = { signal: AbortSignal.any([signal, over.signal]) };
    const late = this.#parts.clock.sleep(REACH_MS, ended).then(() => {
      throw new AgentError('store.unavailable', { problem: 'the store cannot be read at present' });
    });
    try {
      await Promise.race([this.#told(version, ended), late]);
    } finally {
      over.abort();
    }
  }

  async #told(version: bigint, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(signal.reason);
      };
      const waiter = {
        version,
        resolve: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      this.#waiters.push(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { clock, logger, prefix } = this.#parts;
    let retryMs = RETRY_LEAST_MS;
    while (!signal.aborted) {
      try {
        await this.#session(signal);
      } catch (error) {
        if (this.#isCurrent) retryMs = RETRY_LEAST_MS;
        this.#isCurrent = false;
        if (signal.aborted) return;
        logger.warn('a watch of the control store has ended; trying again', { prefix, error, retryMs });
        await clock.sleep(retryMs, { signal }).catch(() => {});
        retryMs = Math.min(retryMs * 2, RETRY_MOST_MS);
      }
    }
  }

  async #session(signal: AbortSignal): Promise<void> {
    const { store, prefix } = this.#parts;
    const seen = new Set<string>();
    const first = () => {
      const gone = [...this.#versions].filter(([key]) => !seen.has(key));
      this.#tell(gone.map(([key, version]) => ({ key, value: undefined, version })));
      this.#isCurrent = true;
      this.#hasLoaded = true;
      this.#release(true);
    };
    for await (const changes of store.watch(prefix, { signal, first })) {
      if (!this.#isCurrent) for (const { key } of changes) seen.add(key);
      this.#tell(changes);
      this.#release(false);
    }
  }

  #tell(changes: readonly StoreChange[]): void {
    for (const { key, value, version } of changes) {
      if (value === undefined) this.#versions.delete(key);
      else this.#versions.set(key, version);
      if (version > this.#highest) this.#highest = version;
    }
    if (changes.length > 0) this.#parts.changed(changes);
  }

  /** What was committed before a watch began is in what it tells at first, whatever its version. */
  #release(everything: boolean): void {
    if (!this.#isCurrent || this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ version }) => everything || version <= this.#highest);
    this.#waiters = this.#waiters.filter((waiter) => !ready.includes(waiter));
    for (const { resolve } of ready) resolve();
  }
}
