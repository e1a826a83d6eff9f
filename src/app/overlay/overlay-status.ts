import { formatAddressPort, formatIpv4Range } from '../../domain/kernel/network.js';
import { DEAD_MS, formatOverlayAddress, type ObservedPeer } from '../../domain/overlay/model.js';
import { handshakeAgeMs, type OverlayMemory } from '../../domain/overlay/readings.js';
import type { OverlayPeerStatus, OverlayStatus } from '../../ports/driving/operations.js';
import type { OverlayReading } from './overlay-keeper.js';

/** The overlay, for those who operate the node; undefined before it was read. */
export function overlayStatus(reading: OverlayReading | undefined, monotonic: number): OverlayStatus | undefined {
  if (reading === undefined) return undefined;
  const { observed, memory } = reading;
  const { link } = observed;
  const [address] = link?.addresses ?? [];
  return {
    link: link?.kind,
    publicKey: observed.publicKey,
    address: address === undefined ? '' : formatOverlayAddress(address),
    mtu: link?.mtu ?? 0,
    peers: (link?.peers ?? []).map((peer) => peerStatus(peer, memory, monotonic)),
  };
}

function peerStatus(peer: ObservedPeer, memory: OverlayMemory, monotonic: number): OverlayPeerStatus {
  const { publicKey, endpoint, ranges, received, sent } = peer;
  const ageMs = handshakeAgeMs(memory.get(publicKey), monotonic);
  const [first] = ranges;
  return {
    publicKey,
    address: first === undefined ? '' : first.prefixLength === 32 ? first.network : formatIpv4Range(first),
    endpoint: endpoint === undefined ? '' : formatAddressPort(endpoint.address, endpoint.port),
    state: ageMs !== undefined && ageMs < DEAD_MS ? 'up' : 'down',
    handshakeAgeMs: ageMs,
    receivedBytes: received,
    sentBytes: sent,
    ranges: ranges.map(formatIpv4Range),
  };
}
