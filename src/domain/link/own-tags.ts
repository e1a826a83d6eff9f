/** Answers come within seconds; ten minutes leave out no straggler. */
const KEPT_MS = 600_000;
const MOST = 1_000;

/** Tags that this agent has made in the last 10 min, at most 1,000: what comes back under one is an answer, and never answered (C2). */
export class OwnTags {
  readonly #madeAt = new Map<string, number>();

  /** Once for each tag. `now` on a clock that never goes back, milliseconds. */
  add(tag: string, now: number): void {
    this.#madeAt.set(tag, now);
    for (const [oldest, madeAt] of this.#madeAt) {
      if (this.#madeAt.size <= MOST && now - madeAt <= KEPT_MS) return;
      this.#madeAt.delete(oldest);
    }
  }

  has(tag: string, now: number): boolean {
    const madeAt = this.#madeAt.get(tag);
    return madeAt !== undefined && now - madeAt <= KEPT_MS;
  }
}
