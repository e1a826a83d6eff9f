import type { CallOptions } from './call-options.js';

/** Time, so that everything that waits can be tested without waiting. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. May jump. */
  now(): number;
  /** Milliseconds of a clock that never goes back; its zero means nothing. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; on abort it rejects at once with the signal's reason. */
  sleep(ms: number, options: CallOptions): Promise<void>;
}
