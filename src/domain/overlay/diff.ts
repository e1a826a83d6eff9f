import { type AddressPort, formatIpv4Range, type Ipv4Range } from '../kernel/network.js';
import {
  KEEPALIVE_S,
  type ObservedLink,
  type ObservedPeer,
  type OverlayConfig,
  type PeerConfig,
  type PublicKey,
} from './model.js';
import { sameEndpoint } from './plan.js';

/** A peer as it is set; undefined members stay. */
export interface PeerChange {
  readonly publicKey: PublicKey;
  readonly endpoint: AddressPort | undefined;
  readonly ranges: readonly Ipv4Range[] | undefined;
}

export interface OverlayChanges {
  /** Before anything is set; some of them are set again. */
  readonly remove: readonly PublicKey[];
  readonly set: readonly PeerChange[];
  readonly addRoutes: readonly Ipv4Range[];
  readonly removeRoutes: readonly Ipv4Range[];
}

/** From what the interface has to what it is to be; nothing when it is so already. */
export function overlayChanges(
  { peers, untouched, routes }: OverlayConfig,
  link: Pick<ObservedLink, 'peers' | 'routes'>,
): OverlayChanges {
  const present = new Map(link.peers.map((peer) => [peer.publicKey, peer]));
  const wanted = new Set([...peers.map(({ publicKey }) => publicKey), ...untouched]);
  const strangers = [...present.keys()].filter((key) => !wanted.has(key));
  // WireGuard has no word for "no endpoint": it comes of being added anew.
  const again = peers.filter(
    ({ publicKey, endpoint }) => endpoint.at === 'none' && present.get(publicKey)?.endpoint !== undefined,
  );
  for (const { publicKey } of again) present.delete(publicKey);
  return {
    remove: [...strangers, ...again.map(({ publicKey }) => publicKey)],
    set: peers.flatMap((peer) => peerChange(peer, present.get(peer.publicKey)) ?? []),
    addRoutes: without(routes, link.routes),
    removeRoutes: without(link.routes, routes),
  };
}

function peerChange({ publicKey, endpoint, ranges }: PeerConfig, present: ObservedPeer | undefined): PeerChange | undefined {
  const at = endpoint.at === 'address' ? endpoint.endpoint : undefined;
  if (present === undefined) return { publicKey, endpoint: at, ranges };
  const newEndpoint = at === undefined || sameEndpoint(at, present.endpoint) ? undefined : at;
  const sameRanges = without(ranges, present.ranges).length + without(present.ranges, ranges).length === 0;
  if (newEndpoint === undefined && sameRanges && present.keepaliveS === KEEPALIVE_S) return undefined;
  return { publicKey, endpoint: newEndpoint, ranges: sameRanges ? undefined : ranges };
}

function without(ranges: readonly Ipv4Range[], others: readonly Ipv4Range[]): readonly Ipv4Range[] {
  const known = new Set(others.map(formatIpv4Range));
  return ranges.filter((range) => !known.has(formatIpv4Range(range)));
}
