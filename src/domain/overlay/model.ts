import type { Brand } from '../kernel/brand.js';
import {
  type AddressPort,
  addressPort,
  type IpAddress,
  type Ipv4Range,
  ipAddress,
  ipv4ToNumber,
  numberToIpv4,
  type PortNumber,
  portNumber,
} from '../kernel/network.js';

/** A WireGuard public key: 32 bytes as 43 characters of base64 and `=`. */
export type PublicKey = Brand<string, 'PublicKey'>;

/** The interface of the overlay; the same on every node. */
export const OVERLAY_DEVICE = 'wg0';
export const OVERLAY_PORT: PortNumber = portOf(51_820);
export const KEEPALIVE_S = 5;
/** 1500 of an Ethernet less 80 of IPv6, UDP and WireGuard. */
export const USUAL_MTU = 1_420;
/** By which the routes of the overlay are known from all others. */
export const ROUTE_PROTOCOL = 201;
/** WireGuard itself gives a session up after so long without a handshake (REJECT_AFTER_TIME). */
export const DEAD_MS = 180_000;

/** An address of the node in the overlay, and how long the prefix of the overlay is. */
export interface OverlayAddress {
  readonly address: IpAddress;
  readonly prefixLength: number;
}

/** A peer as it was declared and understood. */
export interface WantedPeer {
  readonly publicKey: PublicKey;
  /** Undefined for one behind NAT, which calls first. */
  readonly endpoint: AddressPort | undefined;
  /** Its address in the overlay, then the networks behind it. */
  readonly ranges: readonly Ipv4Range[];
}

/** Why a peer is not as it was declared. */
export interface PeerFailure {
  /** As it was given. */
  readonly publicKey: string;
  readonly reason: string;
}

/** A whole set: who is not in it is no peer. */
export interface WantedSet {
  /** Undefined: what the interface has stays. */
  readonly self: OverlayAddress | undefined;
  readonly peers: readonly WantedPeer[];
  /** Declared, and of no use: what the interface has of them stays as it is. */
  readonly unusable: readonly PeerFailure[];
}

/** A peer that the interface has. */
export interface ObservedPeer {
  readonly publicKey: PublicKey;
  readonly endpoint: AddressPort | undefined;
  readonly ranges: readonly Ipv4Range[];
  /** Of the latest one, wall clock in milliseconds; 0 when there was none. */
  readonly handshakeAt: number;
  readonly received: number;
  readonly sent: number;
  readonly keepaliveS: number;
}

/** Who carries the packets. */
export type LinkKind = 'kernel' | 'wireguard-go';

export interface ObservedLink {
  readonly kind: LinkKind;
  readonly up: boolean;
  readonly mtu: number;
  readonly port: number;
  readonly addresses: readonly OverlayAddress[];
  readonly peers: readonly ObservedPeer[];
  /** Those of ours alone. */
  readonly routes: readonly Ipv4Range[];
}

export interface Observed {
  /** The node's own. */
  readonly publicKey: PublicKey;
  /** Undefined: there is no interface. */
  readonly link: ObservedLink | undefined;
  /** Networks that other interfaces are directly connected to. */
  readonly connected: readonly Ipv4Range[];
}

/** `keep`: whatever the interface has; a live peer may have roamed. */
export type EndpointChoice =
  | { readonly at: 'keep' }
  | { readonly at: 'none' }
  | { readonly at: 'address'; readonly endpoint: AddressPort };

export interface PeerConfig {
  readonly publicKey: PublicKey;
  readonly endpoint: EndpointChoice;
  readonly ranges: readonly Ipv4Range[];
}

/** What the interface is to be. */
export interface OverlayConfig {
  /** Undefined: its addresses stay. */
  readonly self: OverlayAddress | undefined;
  readonly mtu: number;
  readonly peers: readonly PeerConfig[];
  /** Peers that are not changed in any way. */
  readonly untouched: readonly PublicKey[];
  readonly routes: readonly Ipv4Range[];
}

/** `undefined` when `text` is no key. */
export function publicKey(text: string): PublicKey | undefined {
  // 32 bytes are 42 characters and 4 bits: the last one has two bits of 0.
  return /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text) ? (text as PublicKey) : undefined;
}

/** `10.78.0.3/16`: an address, not a network. */
export function overlayAddress(text: string): OverlayAddress | undefined {
  const match = /^([\d.]+)\/([1-9]\d?)$/.exec(text);
  const address = ipv4ToNumber(match?.[1] ?? '');
  const prefixLength = Number(match?.[2]);
  return address === undefined || prefixLength > 32 ? undefined : { address: numberToIpv4(address), prefixLength };
}

export function formatOverlayAddress({ address, prefixLength }: OverlayAddress): string {
  return `${address}/${prefixLength}`;
}

/** Its network; bits behind the prefix are dropped, as `wg` and the kernel do. An address alone is a network of one. */
export function networkOf(text: string): Ipv4Range | undefined {
  const match = /^([\d.]+)(?:\/(0|[1-9]\d?))?$/.exec(text);
  const address = ipv4ToNumber(match?.[1] ?? '');
  const prefixLength = match?.[2] === undefined ? 32 : Number(match[2]);
  if (address === undefined || prefixLength > 32) return undefined;
  const size = 2 ** (32 - prefixLength);
  return { network: numberToIpv4(Math.floor(address / size) * size), prefixLength };
}

/** An address alone has the port of the overlay. */
export function peerEndpoint(text: string): AddressPort | undefined {
  const address = ipAddress(text);
  return address === undefined ? addressPort(text) : { address, port: OVERLAY_PORT };
}

function portOf(number: number): PortNumber {
  const port = portNumber(number);
  if (port === undefined) throw new RangeError(`not a port: ${number}`);
  return port;
}
