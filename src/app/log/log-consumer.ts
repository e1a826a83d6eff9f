import { AgentError } from '../../domain/kernel/errors.js';
import { type LogFrame, type Revision, ZERO_REVISION } from '../../domain/log/model.js';
import { ClusterState, type Touched } from '../../domain/resource/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Logger } from '../../ports/logger.js';
import { RevisionWaiters } from '../agent/revision-waiters.js';
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
  readonly #waiters = new RevisionWaiters();
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
    await this.reached(ZERO_REVISION, { signal });
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

  /** The log is in this process: what it does not say has not happened. */
  fresh(): boolean {
    return this.state.cursor !== undefined;
  }

  async reached(revision: Revision, options: CallOptions): Promise<void> {
    options.signal.throwIfAborted();
    if (!this.#holds(revision)) await this.#waiters.wait(revision, options);
  }

  onChange(listener: (touched: Touched) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let retryMs = RETRY_LEAST_MS;
    while (!signal.aborted) {
      const { framesRead, failed, error } = await this.#session(signal);
      if (signal.aborted) return;
      if (framesRead > 0) retryMs = RETRY_LEAST_MS;
      if (failed) this.#logger.warn('the log could not be followed; trying again', { error, retryMs });
      else this.#logger.info('taking another snapshot of the log', { error });
      // Also when a snapshot is what it needs: one that leads to the next without an entry in between would never rest.
      if (!failed && framesRead > 0) continue;
      await this.#clock.sleep(retryMs, { signal }).catch(() => {});
      retryMs = Math.min(retryMs * 2, RETRY_MOST_MS);
    }
  }

  /** Until the cursor no longer leads on, or the log fails. Another session follows every one. */
  async #session(signal: AbortSignal): Promise<SessionEnd> {
    let framesRead = 0;
    try {
      const snapshot = await this.#log.snapshot('', { signal });
      this.#changed(this.state.replace(snapshot));
      for await (const frame of this.#log.watch(snapshot.cursor, { signal })) {
        if (!this.#take(frame)) break;
        framesRead++;
      }
      return { framesRead, failed: false, error: undefined };
    } catch (error) {
      return { framesRead, failed: !(error instanceof AgentError && needsSnapshot(error)), error };
    }
  }

  /** Whether the frame led on from what the view holds. */
  #take(frame: LogFrame): boolean {
    if (frame.previous !== this.state.revision) return false;
    if (frame.kind === 'entry') this.#changed(this.state.fold(frame.entry));
    else this.#currentAt = this.#clock.monotonic() - frame.ageMs;
    return true;
  }

  #changed(touched: Touched): void {
    this.#currentAt = this.#clock.monotonic();
    for (const listener of this.#listeners) {
      try {
        listener(touched);
      } catch (error) {
        this.#logger.error('a reader of the log failed', { error });
      }
    }
    this.#waiters.reached(this.state.revision);
  }

  #holds(revision: Revision): boolean {
    return this.state.cursor !== undefined && this.state.revision >= revision;
  }
}

interface SessionEnd {
  readonly framesRead: number;
  /** Whether the log is at fault; otherwise only the cursor is. */
  readonly failed: boolean;
  readonly error: unknown;
}

function needsSnapshot({ code }: AgentError): boolean {
  return code === 'log.compacted' || code === 'log.changed' || code === 'log.slow';
}
