import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { LinkState } from './link-subsystem.js';

/** A start with a server at hand takes less than a second; one without has nothing to wait for. */
const LONGEST_MS = 15_000;
const LOOK_MS = 250;

/** Resolves when there is a stream, or after 15 s without one. */
export async function untilLinked(
  link: { state(): Pick<LinkState, 'connected'> },
  clock: Clock,
  options: CallOptions,
): Promise<void> {
  const end = clock.monotonic() + LONGEST_MS;
  while (link.state().connected === undefined && clock.monotonic() < end) await clock.sleep(LOOK_MS, options);
}
