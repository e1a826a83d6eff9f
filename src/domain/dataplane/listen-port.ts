/** A port that an unprivileged user may listen on, easy to guess from the service's: 80 becomes 8080. */
const DEV_OFFSET = 8_000;
/** Asks the kernel for a free one. */
const ANY_PORT = 0;
const MAX_PORT = 65_535;

/**
 * The ports to try for a listener, in order. In production there is only the service's own. In dev mode one that cannot be bound
 * gives way to another, and what was chosen once is kept for as long as it can be had.
 */
export function listenPortCandidates(port: number, remembered: number | undefined, mayMove: boolean): readonly number[] {
  if (!mayMove) return [port];
  const guessable = port + DEV_OFFSET <= MAX_PORT ? [port + DEV_OFFSET] : [];
  const wanted = remembered === undefined ? [] : [remembered];
  return [...new Set([...wanted, port, ...guessable, ANY_PORT])];
}
