import { z } from 'zod';
import { formatIpv4Range, type Ipv4Range } from '../kernel/network.js';
import {
  networkOf,
  overlayAddress,
  type PeerFailure,
  peerEndpoint,
  publicKey,
  type WantedPeer,
  type WantedSet,
} from './model.js';

/** The overlay of the largest fleet that is planned for. */
const MOST_PEERS = 10_000;
const MOST_RANGES = 256;
const MAX_TEXT = 128;

const text = z.string('text').max(MAX_TEXT, `at most ${MAX_TEXT} characters`);

const peer = z.object({
  pubKey: text,
  endpointIp: text.nullish(),
  vpnIp: text,
  extraAllowedIps: z.array(text, 'a list').max(MOST_RANGES, `at most ${MOST_RANGES}`).nullish(),
});

/** The payload of SET_VPN_PEERS. `address` is an addition of our control planes: that of the node itself. */
export const peersPayload = z.object({
  peers: z.array(peer, 'a list').max(MOST_PEERS, `at most ${MOST_PEERS}`),
  address: text.nullish(),
});

/** A peer as the wire says it. */
export interface DeclaredPeer {
  readonly pubKey: string;
  readonly endpointIp?: string | null | undefined;
  readonly vpnIp: string;
  readonly extraAllowedIps?: readonly string[] | null | undefined;
}

/** Reads each peer by itself: one that is of no use is named, and the others are peers. */
export function wantedSet(peers: readonly DeclaredPeer[], address: string | undefined): WantedSet {
  const read = peers.map(wantedPeer);
  return {
    self: address === undefined || address === '' ? undefined : overlayAddress(address),
    peers: read.flatMap((one) => ('ranges' in one ? [one] : [])),
    unusable: read.flatMap((one) => ('reason' in one ? [one] : [])),
  };
}

function wantedPeer({ pubKey, endpointIp, vpnIp, extraAllowedIps }: DeclaredPeer): WantedPeer | PeerFailure {
  const failure = (reason: string): PeerFailure => ({ publicKey: pubKey, reason });
  const key = publicKey(pubKey);
  if (key === undefined) return failure('its key is not 43 characters of base64 and =');
  const endpoint = endpointIp ? peerEndpoint(endpointIp) : undefined;
  if (endpointIp && endpoint === undefined) return failure(`its endpoint is no IP address: ${JSON.stringify(endpointIp)}`);
  const ranges: Ipv4Range[] = [];
  for (const one of [vpnIp, ...(extraAllowedIps ?? [])]) {
    const range = networkOf(one);
    if (range === undefined) return failure(`${JSON.stringify(one)} is no IPv4 address or network`);
    if (range.prefixLength === 0) return failure('0.0.0.0/0 would take every packet of this node');
    if (!ranges.some((other) => formatIpv4Range(other) === formatIpv4Range(range))) ranges.push(range);
  }
  return { publicKey: key, endpoint, ranges };
}
