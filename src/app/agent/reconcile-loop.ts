import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';

export interface ReconcileLoopConfig {
  /** For the log. */
  readonly name: string;
  /** Looks at everything anew and makes it right. `signal` ends when the loop stops. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to, not with, 1. */
  readonly random: () => number;
  /** Between the end of a run and the next one, however often the loop is marked. */
  readonly leastGapMs: number;
  /** After the end of a run the next one comes of itself. */
  readonly greatestGapMs: number;
  /** After a failure, doubled by each further one; 1 s unless given. */
  readonly firstBackoffMs?: number;
  /** 60 s unless given. */
  readonly greatestBackoffMs?: number;
}

export interface ReconcileStatus {
  readonly running: boolean;
  readonly dirty: boolean;
  /** Milliseconds since the Unix epoch; `undefined` before the first success. */
  readonly lastSuccess: number | undefined;
  /** The newest failure while it lasts: `since` is when the first of the row was, `failures` how many they are. */
  readonly error: { readonly error: unknown; readonly since: number; readonly failures: number } | undefined;
}

/**
 * Level-triggered: events only mark the loop dirty, and each run looks at everything. One run at a time; marks during a run cause one
 * more. A mark does not shorten the back-off after a failure, or a busy source of events would undo it.
 */
export class ReconcileLoop {
  readonly #config: ReconcileLoopConfig;
  #dirty = false;
  #running = false;
  #lastSuccess: number | undefined;
  #error: { readonly error: unknown; readonly since: number; readonly failures: number } | undefined;
  #stopper: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();
  /** Ends the wait of a loop that has nothing to do. */
  #wake: () => void = () => {};
  /** Ends the wait after a failure. */
  #hurry: () => void = () => {};
  #settled: (() => void)[] = [];

  constructor(config: ReconcileLoopConfig) {
    this.#config = config;
  }

  /** The first run begins at once. Starting a loop that runs changes nothing. It also ends, like by `stop`, when `signal` does. */
  start(signal?: AbortSignal): void {
    if (this.#stopper !== undefined) return;
    const stopper = new AbortController();
    this.#stopper = stopper;
    this.#dirty = true;
    this.#ended = this.#loop(signal === undefined ? stopper.signal : AbortSignal.any([stopper.signal, signal])).finally(() => {
      this.#stopper = undefined;
      this.#settle();
    });
  }

  /** Something may have changed. Cheap, and may come before the start. */
  markDirty(): void {
    this.#dirty = true;
    this.#wake();
  }

  /** What a run needed is there again: the next one begins at once, also out of a back-off. For events that are rare by themselves. */
  retryNow(): void {
    this.markDirty();
    this.#hurry();
  }

  /** Resolves when the run that was under way has ended. Safe before `start` and twice; the loop may be started again. */
  async stop(): Promise<void> {
    this.#stopper?.abort();
    await this.#ended;
  }

  /** Resolves when no run is under way or due: a run that began after the last mark has ended, well or not, or the loop has stopped. */
  settled(): Promise<void> {
    if (this.#stopper === undefined || !(this.#dirty || this.#running)) return Promise.resolve();
    return new Promise((resolve) => this.#settled.push(resolve));
  }

  status(): ReconcileStatus {
    return { running: this.#running, dirty: this.#dirty, lastSuccess: this.#lastSuccess, error: this.#error };
  }

  async #loop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#runOnce(signal);
      if (!this.#dirty) this.#settle();
      await this.#pause(signal);
    }
  }

  async #runOnce(signal: AbortSignal): Promise<void> {
    const { clock, logger, name, run } = this.#config;
    // Before the run: what is marked from now on may have been missed by it.
    this.#dirty = false;
    this.#running = true;
    try {
      await run(signal);
      if (this.#error !== undefined) logger.info(`${name}: works again`, { failures: this.#error.failures });
      this.#error = undefined;
      this.#lastSuccess = clock.now();
    } catch (error) {
      if (signal.aborted) return;
      const { since, failures } = this.#error ?? { since: clock.now(), failures: 0 };
      this.#error = { error, since, failures: failures + 1 };
      logger.warn(`${name}: failed, will be tried again`, { error, failures: failures + 1 });
    } finally {
      this.#running = false;
    }
  }

  /** Until the next run is due, or the loop stops. */
  async #pause(signal: AbortSignal): Promise<void> {
    const { leastGapMs, greatestGapMs } = this.#config;
    await this.#sleep(leastGapMs, signal);
    if (signal.aborted) return;
    // By hand: AbortSignal.any on a signal that lives for weeks would gather one dependant a run.
    const woken = new AbortController();
    const end = () => woken.abort();
    signal.addEventListener('abort', end);
    if (this.#error !== undefined) {
      this.#hurry = end;
      await this.#sleep(Math.max(0, this.#backoffMs(this.#error.failures) - leastGapMs), woken.signal);
    } else if (!this.#dirty) {
      this.#wake = end;
      await this.#sleep(Math.max(0, greatestGapMs - leastGapMs), woken.signal);
    }
    signal.removeEventListener('abort', end);
    this.#wake = this.#hurry = () => {};
  }

  /** Half of it is certain and half is chance, so that many nodes that failed together do not come back together. */
  #backoffMs(failures: number): number {
    const { firstBackoffMs = 1_000, greatestBackoffMs = 60_000, random } = this.#config;
    const full = Math.min(greatestBackoffMs, firstBackoffMs * 2 ** (failures - 1));
    return full / 2 + (full / 2) * random();
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#config.clock.sleep(ms, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #settle(): void {
    const settled = this.#settled;
    this.#settled = [];
    for (const resolve of settled) resolve();
  }
}
