/** A link that was up for so long begins the schedule anew. */
const STABLE_MS = 120_000;
/** When the connection died or was refused, whatever the server said last. */
const LEAST_SPREAD_MS = 10_000;
/** When only the stream ended and the server answers. */
const STREAM_SPREAD_MS = 1_000;
const FIRST_BACKOFF_MS = 1_000;
const GREATEST_BACKOFF_MS = 60_000;
/** Another machine has this node's certificate: nothing to hurry for (B4). */
const DUPLICATE_MS = 300_000;

export interface LostLink {
  /** `duplicate`: the server knows another machine under this id. */
  readonly what: 'stream' | 'connection' | 'duplicate';
  /** How long it was connected; 0 when it never was. */
  readonly upMs: number;
  /** What the server said last; 0 when it said nothing. */
  readonly spreadMs: number;
  /** When a server that stops wants us back. */
  readonly retryMs: number | undefined;
}

/**
 * How long to wait before attempt `failures + 1` (I3), milliseconds, and how many have failed in a row from now on. The first wait is
 * uniform in [0, spread], later ones in [0, 1 s, 2 s, 4 s … 60 s]. `random` is from 0 up to, not with, 1.
 */
export function planReconnect(
  lost: LostLink,
  failures: number,
  random: number,
): { readonly waitMs: number; readonly failures: number } {
  const before = lost.upMs >= STABLE_MS ? 0 : failures;
  // The server has spread these itself.
  if (lost.retryMs !== undefined) return { waitMs: lost.retryMs, failures: before };
  if (lost.what === 'duplicate') return { waitMs: DUPLICATE_MS, failures: before };
  return { waitMs: greatestWait(lost, before) * random, failures: before + 1 };
}

function greatestWait({ what, spreadMs }: LostLink, failures: number): number {
  if (failures === 0) return what === 'connection' ? Math.max(LEAST_SPREAD_MS, spreadMs) : STREAM_SPREAD_MS;
  return Math.min(GREATEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
}

/**
 * In which order `count` addresses are tried, as indexes: each once. The one of the stream that ended comes first, as its server
 * answers; that of a connection that died comes last; a new process begins at any, so that a fleet spreads over its servers.
 */
export function addressOrder(
  count: number,
  last: { readonly index: number; readonly what: 'stream' | 'connection' } | undefined,
  random: number,
): readonly number[] {
  const first = last === undefined ? Math.floor(random * count) : last.what === 'stream' ? last.index : last.index + 1;
  return Array.from({ length: count }, (_, offset) => (first + offset) % count);
}
