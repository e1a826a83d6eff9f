import { AgentError } from '../kernel/errors.js';
import type { Cursor, Digest, Revision } from './model.js';

/** What of a log can be read. */
export interface LogExtent {
  readonly head: Cursor;
  /** Oldest entry that is retained. */
  readonly minimum: Revision;
}

/**
 * Why a reader may not go on from `from`, as far as that is known without reading entries; undefined if it may. A number above
 * the head is another past, not a future to wait for (engine.md E3).
 */
export function refuseCursor(from: Cursor, { head, minimum }: LogExtent): AgentError | undefined {
  const facts = { log: head.logId, revision: String(from.revision), head: String(head.revision), minimum: String(minimum) };
  const changed = (problem: string) => new AgentError('log.changed', { problem, ...facts });
  if (from.logId !== head.logId) return changed('the cursor is of another log');
  if (from.revision > head.revision) return changed('the cursor is ahead of the log');
  if (from.revision + 1n < minimum) {
    return new AgentError('log.compacted', { problem: `entries before ${minimum} are no longer kept`, ...facts });
  }
  if (from.revision === head.revision && from.digest !== head.digest) return changedPast(from, head.digest);
  return undefined;
}

/** The log has another entry at the cursor's number: the next one names another predecessor, or the head is another. */
export function changedPast(from: Cursor, actual: Digest): AgentError {
  return new AgentError('log.changed', {
    problem: 'the log has another past than the cursor',
    log: from.logId,
    revision: String(from.revision),
    expected: from.digest.slice(0, 16),
    actual: actual.slice(0, 16),
  });
}

/** A reader that holds back more than 16 MiB for 30 s is ended (engine.md E8). */
export const SLOW_SIZE = 16 * 1024 * 1024;
export const SLOW_MS = 30_000;

/** How one reader keeps up. Monotonic milliseconds. */
export class Pace {
  #startedAt: number;
  #behindSince: number | undefined;

  constructor(now: number) {
    this.#startedAt = now;
  }

  /**
   * Whether it has been behind for too long. `behindSince` is that of its present place: it moves on while the reader reads, so the
   * earliest one counts until it has caught up. A backlog from before the reader came counts from when it came.
   */
  tooSlow(behindSince: number | undefined, now: number): boolean {
    if (behindSince === undefined) this.#behindSince = undefined;
    else this.#behindSince ??= Math.max(behindSince, this.#startedAt);
    return this.#behindSince !== undefined && now - this.#behindSince >= SLOW_MS;
  }
}
