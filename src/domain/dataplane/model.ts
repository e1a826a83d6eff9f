import type { Brand } from '../kernel/brand.js';
import type { IpAddress, PortNumber } from '../kernel/network.js';

/** `namespace/service/port`. */
export type ListenerId = Brand<string, 'ListenerId'>;

export type Algorithm = 'random' | 'round-robin';

/** A back end of a listener; address and port together are its identity there. */
export interface L4Endpoint {
  readonly address: IpAddress;
  readonly port: PortNumber;
  /** 1 to 100: its share is this over the sum. */
  readonly weight: number;
}

/** One service port, whole: what the data plane needs to carry its connections. */
export interface L4Listener {
  readonly id: ListenerId;
  readonly address: IpAddress;
  /** The service's port. */
  readonly port: PortNumber;
  readonly protocol: 'tcp';
  readonly algorithm: Algorithm;
  /** How long running connections of a withdrawn endpoint may go on, milliseconds. */
  readonly drainMs: number;
  /** Without any, connections are accepted and reset at once. No two with the same address and port. */
  readonly endpoints: readonly L4Endpoint[];
}

export type L4Table = ReadonlyMap<ListenerId, L4Listener>;

/** What turns one table into another. A listener is replaced whole; what did not change in it keeps its connections. */
export interface L4Delta {
  readonly upsert: readonly L4Listener[];
  readonly remove: readonly ListenerId[];
}
