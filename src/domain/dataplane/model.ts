import type { Brand } from '../kernel/brand.js';
import type { IpAddress, PortNumber } from '../kernel/network.js';

/** `namespace/service/port`. */
export type ListenerId = Brand<string, 'ListenerId'>;

export type Protocol = 'tcp' | 'udp';

/**
 * How a new connection, or a new client of a UDP service, gets its endpoint. `source-hash` gives one client address the same endpoint
 * as long as that is there, and moves only the clients of endpoints that come or go.
 */
export type Algorithm = 'random' | 'round-robin' | 'least-connections' | 'source-hash';

/** Which endpoints a node uses: all alike, those that run on it first, or those alone. */
export type Locality = 'any' | 'prefer-local' | 'local-only';

/** A back end of a listener; address and port together are its identity there. */
export interface L4Endpoint {
  readonly address: IpAddress;
  readonly port: PortNumber;
  /** 1 to 100: its share is this over the sum. */
  readonly weight: number;
  /** 0 or 1: endpoints of 1 are chosen only while no endpoint of 0 can be. */
  readonly tier: number;
  /** It runs on this node. */
  readonly local: boolean;
}

/** Who carries a service: rules of the kernel, or the threads of the proxy. */
export type DataPath = 'kernel' | 'proxy';

/** Which PROXY protocol header precedes the bytes (haproxy.org, proxy-protocol.txt); 0 is none. */
export type ProxyHeader = 0 | 1 | 2;

/** One service port, whole: what the data plane needs to carry its connections. */
export interface L4Listener {
  readonly id: ListenerId;
  readonly address: IpAddress;
  /** The service's port. */
  readonly port: PortNumber;
  readonly protocol: Protocol;
  readonly algorithm: Algorithm;
  /** A client address keeps its endpoint for this long after its last new connection, milliseconds; 0 is off. */
  readonly affinityMs: number;
  /** How long running connections of a withdrawn endpoint may go on, milliseconds. */
  readonly drainMs: number;
  /** A TCP connection (0: never) or a UDP flow without a byte in either direction for this long ends, milliseconds. */
  readonly idleMs: number;
  /** Open connections or flows at most; further ones are refused (TCP: reset; UDP: the oldest idle flow gives way). 0: no limit. */
  readonly maxConnections: number;
  /** TCP: every client begins with a PROXY header of either version, or is refused. */
  readonly acceptProxy: boolean;
  /** TCP: the header that endpoints are sent. */
  readonly sendProxy: ProxyHeader;
  /** New connections and flows are refused, whatever the endpoints; running ones go on. */
  readonly refuse: boolean;
  readonly path: DataPath;
  /** Without any, connections are accepted and reset at once. No two with the same address and port. */
  readonly endpoints: readonly L4Endpoint[];
}

/** Passive health: an endpoint whose dials fail this many times in a row gets no new connection for a while. */
export interface Ejection {
  readonly failures: number;
  readonly returnMs: number;
}

export type L4Table = ReadonlyMap<ListenerId, L4Listener>;

/** What turns one table into another. A listener is replaced whole; what did not change in it keeps its connections. */
export interface L4Delta {
  readonly upsert: readonly L4Listener[];
  readonly remove: readonly ListenerId[];
}
