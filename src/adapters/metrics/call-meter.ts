import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Histogram } from '../../ports/dataplane/data-plane.js';

/** Seconds: a commit on a good disk takes some milliseconds, a write without a quorum is given up after 5 s. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** `refused`: what was asked could not be done, which is an answer too. `abandoned`: whoever asked did not wait for it. */
export const callResults = ['answered', 'refused', 'failed', 'abandoned'] as const;
export type CallResult = (typeof callResults)[number];

export interface OperationFigures {
  readonly operation: string;
  readonly results: Readonly<Record<CallResult, number>>;
  /** Of all that were not abandoned. */
  readonly latency: Histogram;
}

export interface CallFigures {
  readonly operations: readonly OperationFigures[];
  /** Wall clock, milliseconds; undefined while it answers. */
  readonly failingSince: number | undefined;
  /** Time in all in which it did not answer, that which lasts included. */
  readonly failingMs: number;
  /** How long the newest call took that was answered; undefined before the first. */
  readonly answeredInMs: number | undefined;
}

interface Tally {
  readonly results: Record<CallResult, number>;
  readonly counts: number[];
  sum: number;
}

/** Counts and times calls, and for how long they fail: from the beginning of the first that failed to the next answer. */
export class CallMeter<Operation extends string> {
  readonly #clock: Clock;
  readonly #tallies: ReadonlyMap<Operation, Tally>;
  #failing: { readonly since: number; readonly wall: number } | undefined;
  #failedMs = 0;
  #answeredInMs: number | undefined;

  constructor(operations: readonly Operation[], clock: Clock) {
    this.#clock = clock;
    this.#tallies = new Map(operations.map((operation) => [operation, newTally()]));
  }

  async measure<T>(operation: Operation, { signal }: CallOptions, call: () => Promise<T>): Promise<T> {
    const begun = { since: this.#clock.monotonic(), wall: this.#clock.now() };
    try {
      const value = await call();
      this.#answered(begun.since);
      this.#count(operation, 'answered', begun.since);
      return value;
    } catch (error) {
      if (signal.aborted) this.#count(operation, 'abandoned', begun.since);
      else if (error instanceof AgentError && error.kind !== 'unavailable') {
        this.#answered(begun.since);
        this.#count(operation, 'refused', begun.since);
      } else {
        this.#failing ??= begun;
        this.#count(operation, 'failed', begun.since);
      }
      throw error;
    }
  }

  figures(): CallFigures {
    const lasting = this.#failing === undefined ? 0 : this.#clock.monotonic() - this.#failing.since;
    return {
      operations: [...this.#tallies].map(([operation, { results, counts, sum }]) => ({
        operation,
        results: { ...results },
        latency: { bounds: BOUNDS, counts: [...counts], sum },
      })),
      failingSince: this.#failing?.wall,
      failingMs: this.#failedMs + lasting,
      answeredInMs: this.#answeredInMs,
    };
  }

  #answered(begun: number): void {
    const now = this.#clock.monotonic();
    this.#answeredInMs = now - begun;
    // One that was asked before it failed says nothing of now.
    if (this.#failing === undefined || begun < this.#failing.since) return;
    this.#failedMs += now - this.#failing.since;
    this.#failing = undefined;
  }

  #count(operation: Operation, result: CallResult, begun: number): void {
    const tally = this.#tallies.get(operation);
    if (tally === undefined) return;
    tally.results[result] += 1;
    if (result === 'abandoned') return;
    const seconds = (this.#clock.monotonic() - begun) / 1_000;
    const place = BOUNDS.findIndex((bound) => seconds <= bound);
    const index = place < 0 ? BOUNDS.length : place;
    tally.counts[index] = (tally.counts[index] ?? 0) + 1;
    tally.sum += seconds;
  }
}

function newTally(): Tally {
  const counts = Array.from({ length: BOUNDS.length + 1 }, () => 0);
  return { results: { answered: 0, refused: 0, failed: 0, abandoned: 0 }, counts, sum: 0 };
}
