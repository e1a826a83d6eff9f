import { afterLoss, afterSign, afterTime, type Freshness, freshnessAtStart, type Sign } from '../../domain/log/freshness.js';
import type { Clock } from '../../ports/clock.js';

/** How often the age of the view is looked at. */
const LOOK_MS = 1_000;

export interface ViewFreshnessParts {
  readonly clock: Clock;
  /** Milliseconds of a clock that counts while the machine sleeps. */
  readonly bootTime: () => number;
  /** Unconfirmed for longer, a view is stale; milliseconds. */
  readonly staleAfterMs: number;
}

/** Whether a view may be taken for the present state, as time goes by (engine.md J2, J3). */
export class ViewFreshness {
  readonly #parts: ViewFreshnessParts;
  readonly #onTurn: () => void;
  #staleAfterMs: number;
  #state: Freshness = { fresh: false, confirmedAt: undefined, bookmarks: 0 };
  #ticking: { readonly stop: AbortController; readonly done: Promise<void> } | undefined;

  /** `onTurn` is called when `fresh` has changed. */
  constructor(parts: ViewFreshnessParts, onTurn: () => void) {
    this.#parts = parts;
    this.#onTurn = onTurn;
    this.#staleAfterMs = parts.staleAfterMs;
  }

  get fresh(): boolean {
    return this.#state.fresh;
  }

  ageMs(): number | undefined {
    const { confirmedAt } = this.#state;
    return confirmedAt === undefined ? undefined : this.#parts.bootTime() - confirmedAt;
  }

  /** When the view was confirmed, by the wall clock; long ago when it never was. */
  currentAt(): number {
    const age = this.ageMs();
    return age === undefined ? 0 : this.#parts.clock.now() - age;
  }

  /** With a view that was current at `storedAt` by the wall clock; without one, undefined. */
  start(storedAt: number | undefined): void {
    const { clock, bootTime } = this.#parts;
    this.#set(freshnessAtStart(storedAt, { wall: clock.now(), boot: bootTime() }, this.#staleAfterMs));
    const stop = new AbortController();
    this.#ticking = { stop, done: this.#tick(stop.signal) };
  }

  async stop(): Promise<void> {
    const ticking = this.#ticking;
    this.#ticking = undefined;
    ticking?.stop.abort();
    await ticking?.done;
  }

  /** Counts from the next look on, within a second. A view that is stale stays so until its signs make it fresh. */
  setStaleAfter(ms: number): void {
    this.#staleAfterMs = ms;
  }

  sign(sign: Sign): void {
    this.#set(afterSign(this.#state, sign, this.#parts.bootTime(), this.#staleAfterMs));
  }

  lost(): void {
    this.#set(afterLoss(this.#state));
  }

  async #tick(signal: AbortSignal): Promise<void> {
    const { clock, bootTime } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, { signal }).catch(() => {});
      this.#set(afterTime(this.#state, bootTime(), this.#staleAfterMs));
    }
  }

  #set(next: Freshness): void {
    const turned = next.fresh !== this.#state.fresh;
    this.#state = next;
    if (turned) this.#onTurn();
  }
}
