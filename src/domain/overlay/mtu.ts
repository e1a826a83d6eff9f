import type { PublicKey } from './model.js';

/** From that of an Ethernet down; 1220 passes a path of 1280, below which IPv6 does not go. */
const LADDER = [1_420, 1_380, 1_340, 1_280, 1_220] as const;

/** IPv4 and ICMP. */
const PROBE_OVERHEAD = 28;
/** What every path carries. */
const SMALL_PROBE_BYTES = 64;
/** A peer that was found well is asked again after so long: its path may have changed. */
const AGAIN_MS = 3_600_000;
/** Peers that are asked at once, so that a large overlay costs a few packets a minute. */
export const MOST_PROBED = 4;

/** When the path to a peer last carried packets of the interface's size, monotonic clock. */
export type ProbeMemory = ReadonlyMap<PublicKey, { readonly mtu: number; readonly at: number }>;

/** Payload of an ICMP echo. */
export function probeSizes(mtu: number): { readonly small: number; readonly large: number } {
  return { small: SMALL_PROBE_BYTES, large: mtu - PROBE_OVERHEAD };
}

/** The next lower one; undefined below the last. */
export function lowerMtu(mtu: number): number | undefined {
  return LADDER.find((step) => step < mtu);
}

/** Of those that live, the ones whose path is not known to carry packets of this size. */
export function duePeers(live: readonly PublicKey[], mtu: number, memory: ProbeMemory, monotonic: number): readonly PublicKey[] {
  const due = live.filter((key) => {
    const known = memory.get(key);
    return known === undefined || known.mtu < mtu || monotonic - known.at >= AGAIN_MS;
  });
  return due.slice(0, MOST_PROBED);
}
