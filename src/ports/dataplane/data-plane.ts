import type { L4Listener, ListenerId, Protocol } from '../../domain/dataplane/model.js';
import type { IpAddress } from '../../domain/kernel/network.js';
import type { CallOptions } from '../call-options.js';

/** A listener with the port that it is to be bound to; 0 asks the kernel for a free one. */
export interface ListenerSpec extends Omit<L4Listener, 'port'> {
  readonly listenPort: number;
  /** How long each endpoint that is tried may take to answer, milliseconds, at least 1; 3,000 when left out. */
  readonly connectTimeoutMs?: number;
}

export interface TableDelta {
  readonly upsert: readonly ListenerSpec[];
  readonly remove: readonly ListenerId[];
}

export type BindFailure = 'address_in_use' | 'permission_denied' | 'address_unavailable' | 'fd_limit' | 'other';

/** How an upserted listener came out. A listener that failed has no socket; its running connections go on. */
export type ListenResult =
  | { readonly id: ListenerId; readonly listening: true; readonly port: number }
  | { readonly id: ListenerId; readonly listening: false; readonly reason: BindFailure; readonly detail: string };

/** Counters since the listener was first applied; they never go down. */
export interface ListenerStats {
  readonly id: ListenerId;
  /** Open connections, or UDP flows. */
  readonly active: number;
  /** Accepted connections (UDP: flows) by how they ended; an idle flow that ends is `completed`. Their sum and `active` make the accepted ones. */
  readonly completed: number;
  /** No endpoint could be reached. */
  readonly failed: number;
  /** There was no endpoint at all, the client's PROXY header was none, or a limit was reached (`limited` are those of them). */
  readonly refused: number;
  readonly limited: number;
  /** UDP flows that gave way to newer ones. */
  readonly evicted: number;
  /** UDP datagrams that could not be passed on. */
  readonly dropped: number;
  /** Ended by a reset or an error of either side. */
  readonly reset: number;
  /** Closed because a drain reached its deadline. */
  readonly drained: number;
  /** From clients to endpoints, and back. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Dials that failed and were followed by another endpoint or by giving up. */
  readonly dialFailures: number;
  /** Of TCP connections that reached an endpoint; undefined until there was one. */
  readonly times?: ConnectionTimes | undefined;
  readonly endpoints: readonly EndpointStats[];
}

/** How long things took, in classes. */
export interface Histogram {
  /** Upper bounds of all classes but the last, which has none; seconds. */
  readonly bounds: readonly number[];
  /** How many fell into each class, the last one included. */
  readonly counts: readonly number[];
  /** Seconds. */
  readonly sum: number;
}

export interface ConnectionTimes {
  /** From a dial that succeeded to the endpoint's answer. */
  readonly dial: Histogram;
  /** From the acceptance to the end. */
  readonly connection: Histogram;
}

export interface EndpointStats {
  readonly address: IpAddress;
  readonly port: number;
  readonly active: number;
  readonly total: number;
  readonly draining: boolean;
  /** Gets no new connection for the moment, as its dials failed several times in a row. */
  readonly ejected: boolean;
}

export interface DataPlaneInfo {
  readonly threads: number;
  /** How many sockets may listen, and how many do. */
  readonly listenerBudget: number;
  readonly listeners: number;
  /** Open connections and flows, and how many there may be in all. */
  readonly connections: number;
  readonly connectionLimit: number;
}

export type DataPlaneEvent =
  /**
   * The last connection of a withdrawn endpoint is gone; `closed` of them were cut at the deadline, by a reset, as a cut stream must not
   * look like a whole one. At once when there was none; never when the endpoint came back before.
   */
  | { readonly type: 'drained'; readonly id: ListenerId; readonly endpoint: string; readonly closed: number }
  /** An endpoint's dials failed several times in a row: it gets no new connection until `returned`, or until all others fail. */
  | { readonly type: 'ejected' | 'returned'; readonly id: ListenerId; readonly endpoint: string }
  /** Accepting pauses because descriptors or memory ran out; it is taken up again by itself. */
  | { readonly type: 'accept_paused'; readonly detail: string };

/** A socket that listens, for the process that comes after this one. */
export interface ListeningSocket {
  readonly protocol: Protocol;
  readonly fd: number;
}

/** The threads that carry connections. They go on whatever the main thread does. */
export interface DataPlane {
  /**
   * Starts the threads, with no listener, or takes them up again after `leave`, with all that they had. `onEvent` is called on the main
   * thread; under pressure events are dropped, never waited for. `inherited` are another process's sockets, which are this one's from now
   * on: a listener takes over the one with its address instead of opening one.
   */
  start(onEvent: (event: DataPlaneEvent) => void, inherited?: readonly ListeningSocket[]): void;
  /** Closes the inherited sockets that no listener has taken over. */
  dropInherited(): void;
  /** The threads go on as they are. */
  leave(): void;
  /** All that listen; the descriptors stay this side's. */
  sockets(): readonly ListeningSocket[];

  /**
   * Makes each named listener as given, in order, and says how each upsert came out, in order. New connections follow the new table
   * when it resolves. The same delta again changes nothing. One failure affects no other listener. Costs O(delta). Calls are
   * carried out one after the other; on abort the listeners up to some point are applied.
   */
  apply(delta: TableDelta, options: CallOptions): Promise<readonly ListenResult[]>;

  stats(): readonly ListenerStats[];
  /** One listener's; `undefined` when there is none. */
  statsOf(id: ListenerId): ListenerStats | undefined;
  info(): DataPlaneInfo;

  /**
   * Listeners close at once; connections have until `graceMs`, then they are closed. All threads have ended when it resolves. Again: the
   * shorter time counts. With `handedOver` another process has the sockets, and nobody is refused at them.
   */
  stop(graceMs: number, options?: { readonly handedOver: boolean }): Promise<void>;
}
