import type { CallOptions } from '../../src/ports/call-options.js';
import type { Clock } from '../../src/ports/clock.js';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/** Time that moves only when a test says so. */
export class FakeClock implements Clock {
  #wall: number;
  #monotonic = 0;
  #sleepers: Sleeper[] = [];

  constructor(now = Date.UTC(2026, 0, 31, 12)) {
    this.#wall = now;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  sleep(ms: number, { signal }: CallOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const sleeper = { due: this.#monotonic + Math.max(0, ms), wake: resolve };
      this.#sleepers.push(sleeper);
      signal.addEventListener('abort', () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal.reason);
      });
    });
  }

  /** How many sleep. */
  get sleepers(): number {
    return this.#sleepers.length;
  }

  /**
   * Both clocks go on. Sleepers wake one after the other, in the order of their times, each at its own time, and what they do
   * (sleeping again as well) happens before the next one wakes.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (let next = this.#earliest(end); next !== undefined; next = this.#earliest(end)) {
      this.#moveTo(next.due);
      const woken = next;
      this.#sleepers = this.#sleepers.filter((sleeper) => sleeper !== woken);
      woken.wake();
      await settle();
    }
    this.#moveTo(end);
    await settle();
  }

  /** The wall clock jumps, back as well; nobody wakes. */
  setWall(now: number): void {
    this.#wall = now;
  }

  #moveTo(monotonic: number): void {
    const step = Math.max(0, monotonic - this.#monotonic);
    this.#monotonic += step;
    this.#wall += step;
  }

  #earliest(end: number): Sleeper | undefined {
    return this.#sleepers
      .filter(({ due }) => due <= end)
      .reduce<Sleeper | undefined>((first, other) => (first === undefined || other.due < first.due ? other : first), undefined);
  }
}

/** Everything that is ready to run has run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
