export interface Rate {
  readonly perSecond: number;
  /** What may come at once after a pause. */
  readonly burst: number;
}

/** Fills at the rate and gives one token a time. Times are of a clock that never goes back, milliseconds. */
export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #at: number;

  constructor(rate: Rate, now: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#at = now;
  }

  /** Whether there was one. */
  take(now: number): boolean {
    this.#fill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** How long until `take` gives one. */
  waitMs(now: number): number {
    this.#fill(now);
    return Math.max(0, ((1 - this.#tokens) * 1_000) / this.#rate.perSecond);
  }

  isFull(now: number): boolean {
    this.#fill(now);
    return this.#tokens >= this.#rate.burst;
  }

  #fill(now: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + ((now - this.#at) * this.#rate.perSecond) / 1_000);
    this.#at = now;
  }
}

/** One bucket for each name. Those that are full are forgotten when there are many: a new one is full as well. */
export class RateLimits {
  readonly #rate: Rate;
  readonly #most: number;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(rate: Rate, most = 20_000) {
    this.#rate = rate;
    this.#most = most;
  }

  /** Whether `name` may once more. */
  take(name: string, now: number): boolean {
    const bucket = this.#buckets.get(name) ?? this.#add(name, now);
    return bucket.take(now);
  }

  #add(name: string, now: number): TokenBucket {
    if (this.#buckets.size >= this.#most) this.#forget(now);
    const bucket = new TokenBucket(this.#rate, now);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  #forget(now: number): void {
    for (const [name, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(name);
    // All of them busy: the oldest begins anew.
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size >= this.#most && oldest !== undefined) this.#buckets.delete(oldest);
  }
}
