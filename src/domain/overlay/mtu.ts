import type { PublicKey } from './model.js';

/** From that of an Ethernet down; 1220 passes a path of 1280, below which IPv6 does not go. */
const LADDER = [1_420, 1_380, 1_340, 1_280, 1_220] as const;

/** IPv4 and ICMP. */
const PROBE_OVERHEAD = 28;
/** What every path carries. */
const SMALL_PROBE_BYTES = 64;
/** A path may change at any time; sets that are pushed one after the other ask once. */
const AGAIN_MS = 50_000;
/** Peers that are asked at once, so that a large overlay costs a few packets a minute. */
export const MOST_PROBED = 4;

/** When a peer was last asked, monotonic clock. */
export type ProbeMemory = ReadonlyMap<PublicKey, number>;

/** Payload of an ICMP echo. */
export function probeSizes(mtu: number): { readonly small: number; readonly large: number } {
  return { small: SMALL_PROBE_BYTES, large: mtu - PROBE_OVERHEAD };
}

/** The next lower one; undefined below the last. */
export function lowerMtu(mtu: number): number | undefined {
  return LADDER.find((step) => step < mtu);
}

/** Of those that live, the ones that were asked longest ago, or never. */
export function duePeers(live: readonly PublicKey[], memory: ProbeMemory, monotonic: number): readonly PublicKey[] {
  const askedAt = (key: PublicKey) => memory.get(key) ?? Number.NEGATIVE_INFINITY;
  const due = live.filter((key) => monotonic - askedAt(key) >= AGAIN_MS);
  return due.toSorted((a, b) => (askedAt(a) < askedAt(b) ? -1 : askedAt(a) > askedAt(b) ? 1 : 0)).slice(0, MOST_PROBED);
}
