import { LIVENESS_MS } from './model.js';

/** Between two looks; a look that comes much later than that was held up by this process, not by the path. */
export const LOOK_MS = 1_000;
const HELD_UP_MS = 3 * LOOK_MS;

export interface LinkPulse {
  readonly now: number;
  readonly lastLookAt: number;
  readonly lastByteAt: number;
  /** Whether a heartbeat waits for its answer. */
  readonly outstanding: boolean;
}

/**
 * Whether the path is dead (C6): no byte for 12 s with a beat outstanding, all on the monotonic clock. A process that did not run may
 * not have read yet what has come: it looks once more.
 */
export function isDead({ now, lastLookAt, lastByteAt, outstanding }: LinkPulse): boolean {
  return outstanding && now - lastByteAt >= LIVENESS_MS && now - lastLookAt <= HELD_UP_MS;
}
