/** So many proposals of one node in a second (engine.md E17), and so many at once. */
export const PROPOSALS_PER_SECOND = 20;

/** Lets `perSecond` through, as many at once after a pause of a second. Times are milliseconds of a clock that never goes back. */
export class Rate {
  readonly #perSecond: number;
  #tokens: number;
  #at: number;

  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
    this.#at = now;
  }

  take(now: number): boolean {
    this.#tokens = Math.min(this.#perSecond, this.#tokens + ((now - this.#at) * this.#perSecond) / 1_000);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
