import { AgentError } from '../../domain/kernel/errors.js';
import type { Revision } from '../../domain/log/model.js';
import { ClusterState, type Touched } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import type { Subsystem } from '../agent/subsystem.js';

const RETRY_LEAST_MS = 100;
const RETRY_MOST_MS = 10_000;

/** Follows the log: a snapshot, then every entry; another snapshot whenever the entries do not lead on. */
export class LogConsumer implements Subsystem, StateView {
  readonly name = 'log-consumer';
  readonly state = new ClusterState();
  readonly #log: OrderedLog;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #listeners = new Set<(touched: Touched) => void>();
  readonly #waiters = new Set<{ readonly revision: Revision; readonly resolve: () => void }>();
  #currentAt: number | undefined;
  #running: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  constructor(log: OrderedLog, clock: Clock, logger: Logger) {
    this.#log = log;
    this.#clock = clock;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    const stop = new AbortController();
    this.#running = { stop, done: this.#follow(stop.signal) };
  }

  async ready(signal: AbortSignal): Promise<void> {
    await this.reached(0n as Revision, { signal });
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort();
    await running?.done;
  }

  ageMs(): number | undefined {
    return this.#currentAt === undefined ? undefined : this.#clock.monotonic() - this.#currentAt;
  }

  async reached(revision: Revision, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#holds(revision)) return;
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

  onChange(listener: (touched: Touched) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let retryMs = RETRY_LEAST_MS;
    while (!signal.aborted) {
      try {
        await this.#session(signal, () => {
          retryMs = RETRY_LEAST_MS;
        });
      } catch (error) {
        if (signal.aborted) return;
        this.#logger.warn('the log could not be followed; trying again', { error, retryMs });
        await this.#clock.sleep(retryMs, { signal }).catch(() => {});
        retryMs = Math.min(retryMs * 2, RETRY_MOST_MS);
      }
    }
  }

  /** Until the cursor no longer leads on. Every return is followed by another session. */
  async #session(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const snapshot = await this.#log.snapshot('', { signal });
    this.#changed(this.state.replace(snapshot));
    try {
      for await (const frame of this.#log.watch(snapshot.cursor, { signal })) {
        onProgress();
        if (frame.kind === 'entry') this.#changed(this.state.fold(frame.entry));
        else if (frame.previous !== this.state.revision) return;
        this.#currentAt = this.#clock.monotonic();
      }
    } catch (error) {
      if (error instanceof RangeError || (error instanceof AgentError && needsSnapshot(error))) {
        this.#logger.info('taking a snapshot of the log', { error });
        return;
      }
      throw error;
    }
  }

  #changed(touched: Touched): void {
    this.#currentAt = this.#clock.monotonic();
    for (const listener of this.#listeners) listener(touched);
    for (const waiter of this.#waiters) if (this.#holds(waiter.revision)) waiter.resolve();
  }

  #holds(revision: Revision): boolean {
    return this.state.cursor !== undefined && this.state.revision >= revision;
  }
}

function needsSnapshot({ code }: AgentError): boolean {
  return code === 'log.compacted' || code === 'log.changed' || code === 'log.slow';
}
