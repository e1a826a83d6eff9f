import type { Revision } from '../../domain/log/model.js';
import type { Clock } from '../../ports/clock.js';
import type { LogStore } from './log-store.js';

export const COPY_MS = 60 * 60 * 1000;
/** After an open, so that a daemon that is restarted again and again does not copy each time at once. */
export const FIRST_COPY_MS = 10_000;
/** When nothing is new since the last copy, or it failed. */
const LOOK_AGAIN_MS = 60_000;

export type CopyEvent =
  | { readonly event: 'copied'; readonly file: string; readonly revision: Revision }
  | { readonly event: 'copy_failed'; readonly error: unknown };

interface CopyOptions {
  readonly store: LogStore;
  readonly clock: Clock;
  readonly head: () => Revision;
  readonly report: (event: CopyEvent) => void;
}

/** Makes a copy of the log each hour in which it has changed. A copy that fails is reported and tried again; it stops nothing. */
export class LogCopies {
  readonly #options: CopyOptions;
  #copied: Revision | undefined;

  constructor(options: CopyOptions) {
    this.#options = options;
  }

  /** Runs until `signal` is aborted. `newest` is the time of the newest copy that there is. */
  async run(newest: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const due = newest === undefined ? 0 : newest + COPY_MS - clock.now();
    let wait = Math.min(Math.max(due, FIRST_COPY_MS), COPY_MS);
    while (!signal.aborted) {
      try {
        await clock.sleep(wait, { signal });
      } catch {
        return;
      }
      wait = (await this.#copy()) ? COPY_MS : LOOK_AGAIN_MS;
    }
  }

  async #copy(): Promise<boolean> {
    const { store, clock, head, report } = this.#options;
    if (head() === 0n || head() === this.#copied) return false;
    try {
      const { file, revision } = await store.copy(clock.now());
      this.#copied = revision;
      report({ event: 'copied', file, revision });
      return true;
    } catch (error) {
      report({ event: 'copy_failed', error });
      return false;
    }
  }
}
