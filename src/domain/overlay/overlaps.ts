import { containsRange, formatIpv4Range, type Ipv4Range, ipv4ToNumber } from '../kernel/network.js';
import type { ObservedPeer, PeerFailure, PublicKey, WantedPeer } from './model.js';

interface Owned {
  readonly owner: PublicKey;
  readonly range: Ipv4Range;
}

/**
 * Peers that are refused because a range of theirs overlaps another's: WireGuard would silently take it from the first. Neither of two gets
 * it, and each is told the other's name. What a refused peer has on the interface stays there, and refuses others in turn.
 */
export function refuseOverlaps(wanted: readonly WantedPeer[], untouched: readonly ObservedPeer[]): readonly PeerFailure[] {
  const refused = new Map<PublicKey, string>();
  const stays = new Map(untouched.map((peer) => [peer.publicKey, peer]));
  for (;;) {
    const before = refused.size;
    const asked = wanted.filter(({ publicKey }) => !refused.has(publicKey));
    const kept = [...stays.values()].filter(({ publicKey }) => !asked.some((peer) => peer.publicKey === publicKey));
    for (const [one, other] of overlaps([...asked, ...kept])) {
      for (const [mine, theirs] of [
        [one, other],
        [other, one],
      ] as const) {
        if (!asked.some(({ publicKey }) => publicKey === mine.owner)) continue;
        const reason = `${formatIpv4Range(mine.range)} overlaps ${formatIpv4Range(theirs.range)} of peer ${theirs.owner}`;
        if (!refused.has(mine.owner)) refused.set(mine.owner, reason);
      }
    }
    if (refused.size === before) return [...refused].map(([publicKey, reason]) => ({ publicKey, reason }));
  }
}

/** Networks are nested or apart: sorted by their begin, those that hold the next one are on the stack. */
function overlaps(peers: readonly Pick<WantedPeer, 'publicKey' | 'ranges'>[]): readonly (readonly [Owned, Owned])[] {
  const all = peers.flatMap(({ publicKey, ranges }) => ranges.map((range): Owned => ({ owner: publicKey, range })));
  const found: (readonly [Owned, Owned])[] = [];
  let around: readonly Owned[] = [];
  for (const next of all.toSorted(byBegin)) {
    around = around.filter(({ range }) => containsRange(range, next.range));
    const other = around.find(({ owner }) => owner !== next.owner);
    if (other !== undefined) found.push([other, next]);
    around = [...around, next];
  }
  return found;
}

function byBegin(one: Owned, other: Owned): number {
  const begin = ({ range }: Owned) => ipv4ToNumber(range.network) ?? 0;
  return begin(one) - begin(other) || one.range.prefixLength - other.range.prefixLength;
}
