import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { Protocol } from '../../domain/dataplane/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { BindFailure } from '../../ports/dataplane/data-plane.js';
import type { NativeDnsResponder, NativeQuestion } from '../dns/dns-addon.js';
import type { ConntrackFunctions } from './conntrack-addon.js';
import type { NftChanges, NftSocket, NftWatcher } from './nft-addon.js';

export type NativeEvent =
  | { readonly type: 'drained'; readonly id: number; readonly address: string; readonly port: number; readonly closed: number }
  | { readonly type: 'ejected' | 'returned'; readonly id: number; readonly address: string; readonly port: number }
  | { readonly type: 'accept_paused'; readonly detail: string };

export type NativeResult =
  | { readonly id: number; readonly port: number }
  | { readonly id: number; readonly reason: BindFailure; readonly detail: string };

export interface NativeInfo {
  readonly threads: number;
  readonly listenerBudget: number;
  readonly listeners: number;
  readonly connections: number;
  readonly connectionLimit: number;
  /** Events that found the queue of 1,024 full. */
  readonly droppedEvents: number;
}

/** native/binding/proxy_object.h. Wrong arguments throw a TypeError. */
export interface NativeProxy {
  apply(delta: Uint8Array): Promise<readonly NativeResult[]>;
  /** One listener's row, or those in which something changed since the last call without `id`; native/binding/values.h has the rows. */
  stats(id?: number): Float64Array;
  info(): NativeInfo;
  /** What listens; the descriptors stay the proxy's. */
  sockets(): readonly NativeSocket[];
  /** Takes the descriptor, and keeps it for the listener that wants its address; false, and closed, when it is no such socket. */
  inherit(protocol: Protocol, fd: number): boolean;
  /** Closes those that no listener has taken. */
  dropInherited(): void;
  stop(graceMs: number, handedOver: boolean): Promise<void>;
}

export interface NativeSocket {
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
  readonly fd: number;
}

/** What holds for all listeners, from the start on. */
export interface ProxySettings {
  /** 0: one per core, at least 2 and at most 8. */
  readonly threads: number;
  /** Open connections and flows in all; 0: what the limit of open files allows, at two descriptors each. */
  readonly maxConnections: number;
  /** How long a thread that has just been busy looks for the next event before it sleeps, microseconds, at most 1,000; 0: not at all. */
  readonly busyPollUs: number;
  /** Dials of an endpoint that fail in a row until it gets no new connection for a while; 0: never. */
  readonly ejectionFailures: number;
  /** How long that while is at first, milliseconds; it doubles with each failed return, up to 16 times this. */
  readonly ejectionReturnMs: number;
}

export interface NativeAddress {
  readonly interface: string;
  readonly address: string;
  readonly prefixLength: number;
  readonly validSeconds: number;
}

export interface Addon extends ConntrackFunctions {
  readonly Proxy: new (settings: Partial<ProxySettings>, onEvent: (event: NativeEvent) => void) => NativeProxy;
  readonly DnsResponder: new (threads: number, onQuestion?: (question: NativeQuestion) => void) => NativeDnsResponder;
  readonly NftSocket: new (descriptor?: number) => NftSocket;
  readonly NftWatcher: new (ownPort: number, onChange: (changes: NftChanges) => void) => NftWatcher;
  /** Upper bounds of the histograms' classes but the last, seconds. */
  readonly timeBounds: { readonly dial: readonly number[]; readonly connection: readonly number[] };
  /** Locks `path` until the process ends; throws an Error with code `EWOULDBLOCK` when another holds it. Returns the descriptor. */
  lockFile(path: string): number;
  /**
   * Makes every address of the prefixes (`10.0.0.0/8`) this machine's own, and takes away what an earlier call made and is not named. Throws an
   * Error with the errno's name as `code`. Outlives the process.
   */
  setLocalRoutes(prefixes: readonly string[]): void;
  /** Of the machine, of one family; `validSeconds` of 2^32 - 1: for ever. This and the following throw as `setLocalRoutes` does. */
  listAddresses(family: 4 | 6): readonly NativeAddress[];
  /** native/core/interface_address.h. Returns the seconds; 0 where none is left. */
  leaseAddress(on: string, address: string, until: number): number;
  removeAddress(on: string, address: string, prefixLength: number): void;
  /** native/core/neighbour.h. */
  tellNeighbours(what: 'announce' | 'probe', on: string, address: string): void;
  /** Returns a descriptor, to be closed by `unwatchNeighbours`. */
  watchNeighbours(on: string, address: string): number;
  /** The MAC of another machine that claims the address. */
  readClaim(fd: number, on: string, address: string): string | undefined;
  unwatchNeighbours(fd: number): void;
  /** The user id at the other end of a unix socket. */
  peerUid(fd: number): number;
  /** Two ends of a unix stream socket. native/core/fd_passing.h has this and the following, which wait, `timeoutMs` at most. */
  openChannel(): { readonly ours: number; readonly theirs: number };
  /** At most 1 MiB and 250 descriptors. */
  sendDescriptors(channel: number, text: string, fds: readonly number[], timeoutMs: number): void;
  receiveDescriptors(channel: number, timeoutMs: number): { readonly text: string; readonly fds: readonly number[] };
}

/** From `dist/adapters/dataplane` and from `src/adapters/dataplane` alike. */
const packageRoot = resolve(import.meta.dirname, '../../..');

/** `override` is what HOLDFAST_ADDON says: a sanitized build, for example. */
export function addonPath(override: string | undefined): string {
  return override === undefined || override === '' ? join(packageRoot, 'build/Release/holdfast.node') : resolve(override);
}

/** @throws AgentError `dataplane.addon_missing` when it is not built, or not for this machine. */
export function loadAddon(path: string = addonPath(process.env.HOLDFAST_ADDON)): Addon {
  if (!existsSync(path)) throw new AgentError('dataplane.addon_missing', { path, problem: `there is no ${path}` });
  try {
    return createRequire(import.meta.url)(path) as Addon;
  } catch (error) {
    throw new AgentError('dataplane.addon_missing', { path, problem: `${path} does not load` }, { cause: error });
  }
}
