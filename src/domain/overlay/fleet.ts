import {
  addressPort,
  containsRange,
  formatIpv4Range,
  type IpAddress,
  type Ipv4Range,
  ipAddress,
  ipv4Range,
  ipv4ToNumber,
  isLoopback,
  numberToIpv4,
} from '../kernel/network.js';
import type { OverlayPeer, OverlaySet } from '../link/calls.js';
import { type Aid, aid, type Nid } from '../link/model.js';
import { networkOf, peerEndpoint, publicKey } from './model.js';

/**
 * What a control plane keeps of the overlay:
 *
 * | key | value |
 * |---|---|
 * | `overlay/node/<nid>` | OverlayRecord as JSON |
 * | `overlay/address/<address>` | the node that has it |
 */
export const overlayPrefix = 'overlay/';
const nodePrefix = `${overlayPrefix}node/`;

export const overlayNodeKey = (nid: Nid) => `${nodePrefix}${nid}`;
export const overlayAddressKey = (address: IpAddress) => `${overlayPrefix}address/${address}`;

/** The node of a key, undefined for a key of something else. */
export function nodeOfKey(key: string): Nid | undefined {
  return key.startsWith(nodePrefix) ? (key.slice(nodePrefix.length) as Nid) : undefined;
}

/** A node in the overlay. */
export interface OverlayRecord {
  readonly aid: Aid;
  readonly address: IpAddress;
  /** Empty until it has said it. */
  readonly pubKey: string;
  /** Empty for one behind NAT. */
  readonly endpoint: string;
  /** Behind it. */
  readonly networks: readonly string[];
}

export function encodeOverlayRecord(record: OverlayRecord): string {
  return JSON.stringify(record);
}

/** Undefined for what is none. */
export function decodeOverlayRecord(text: string): OverlayRecord | undefined {
  try {
    const value: Partial<Record<keyof OverlayRecord, unknown>> = JSON.parse(text);
    const address = ipAddress(String(value.address));
    if (address === undefined || !Array.isArray(value.networks)) return undefined;
    const networks = value.networks.map(String);
    return { aid: aid(String(value.aid)), address, pubKey: String(value.pubKey), endpoint: String(value.endpoint), networks };
  } catch {
    return undefined;
  }
}

/** The lowest address that nobody has; undefined when there is none. Neither the network's own nor its last one is given. */
export function freeAddress({ network, prefixLength }: Ipv4Range, used: ReadonlySet<string>): IpAddress | undefined {
  const begin = ipv4ToNumber(network) ?? 0;
  const end = begin + 2 ** (32 - prefixLength) - 1;
  for (let at = begin + 1; at < end; at++) {
    const address = numberToIpv4(at);
    if (!used.has(address)) return address;
  }
  return undefined;
}

export function isInRange(range: Ipv4Range, address: IpAddress): boolean {
  return containsRange(range, { network: address, prefixLength: 32 });
}

const privateRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'].flatMap((text) => ipv4Range(text) ?? []);

/**
 * Under which a node is reached, of what it says and the address and port that it calls from; empty for one behind NAT: a private address
 * that it does not call from is reached by nobody else.
 */
export function reachableEndpoint(said: string, calledFrom: string): string {
  const endpoint = peerEndpoint(said);
  if (endpoint === undefined || isLoopback(endpoint.address)) return '';
  const isPrivate = privateRanges.some((range) => isInRange(range, endpoint.address)) || /^f[cd]/.test(endpoint.address);
  return isPrivate && addressPort(calledFrom)?.address !== endpoint.address ? '' : said;
}

/** What a node says of itself, with what is of no use left out. */
export interface SaidOfSelf {
  readonly pubKey: string;
  readonly endpoint: string;
  readonly networks: readonly string[];
}

/** Of the networks that a node says it has behind it, those that neither the overlay nor another node has. */
export function acceptSelf(
  { pubKey, endpointIp, extraAllowedIps }: OverlayPeer,
  calledFrom: string,
  taken: readonly Ipv4Range[],
): SaidOfSelf {
  const networks = extraAllowedIps.flatMap((text) => networkOf(text) ?? []);
  const free = networks.filter((range) => !taken.some((other) => containsRange(other, range) || containsRange(range, other)));
  return {
    pubKey: publicKey(pubKey) ?? '',
    endpoint: reachableEndpoint(endpointIp, calledFrom),
    networks: free.slice(0, MOST_NETWORKS).map(formatIpv4Range),
  };
}

/** Of one node. */
const MOST_NETWORKS = 64;

/** The set of a node: all others of its account that have said their key. */
export function overlaySetOf(nid: Nid, records: ReadonlyMap<Nid, OverlayRecord>, range: Ipv4Range): OverlaySet {
  const own = records.get(nid);
  if (own === undefined) return { peers: [], address: '' };
  const others = [...records].filter(([other, record]) => other !== nid && record.aid === own.aid && record.pubKey !== '');
  const peers = others.map(([, { pubKey, endpoint, address, networks }]): OverlayPeer => {
    return { pubKey, endpointIp: endpoint, ip: address, extraAllowedIps: networks };
  });
  return { peers: peers.toSorted((a, b) => (a.ip < b.ip ? -1 : 1)), address: `${own.address}/${range.prefixLength}` };
}

/** The same as the payload of SET_VPN_PEERS. */
export function peersPayloadOf({ peers, address }: OverlaySet): string {
  const named = peers.map(({ pubKey, endpointIp, ip, extraAllowedIps }) => ({ pubKey, endpointIp, vpnIp: ip, extraAllowedIps }));
  return JSON.stringify({ peers: named, address });
}
