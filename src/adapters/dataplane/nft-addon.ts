import type { RuleOperation } from '../../domain/dataplane/ruleset.js';

/** One step on a table of the family inet; `flags` of NFT_TABLE_F_*: owner is 2, persist 4. */
export type NftOperation = { readonly table: string } & (RuleOperation | { readonly kind: 'table'; readonly flags?: number });

/** What the kernel has; without what its kind does not have. */
export interface NftObject {
  readonly family: number;
  readonly table: string;
  readonly chain?: string;
  readonly set?: string;
  /** Of a named counter, with what it has counted. */
  readonly counter?: string;
  readonly packets?: number;
  readonly bytes?: number;
  /** Of an ingress chain. */
  readonly device?: string;
  readonly flags: number;
  /** The netlink port of the socket that owns the table. */
  readonly owner?: number;
  readonly handle?: number;
  /** Of a base chain, with `hook`, `priority` and `policy` (0 drops). */
  readonly type?: string;
  readonly hook?: number;
  readonly priority?: number;
  readonly policy?: number;
  /** Of an element that goes by itself. */
  readonly expiresMs?: number;
  readonly key?: Uint8Array;
  readonly data?: Uint8Array;
  /** A rule's, as netlink attributes. */
  readonly expressions?: Uint8Array;
}

/**
 * One netlink socket, which owns the tables that it makes with the flag for it (native/core/nft_socket.h). Needs CAP_NET_ADMIN. Wrong
 * arguments throw a TypeError; what the kernel refuses an Error with the errno's name as `code` and, when it is about one of the plan's
 * operations, that one's index as `operation`.
 */
export interface NftSocket {
  /**
   * All at once or nothing; returns when it is done. With the generation that it was planned for: `ERESTART` when anyone has changed the ruleset
   * since. `EPERM` and `EOPNOTSUPP` say whether a right, the kernel or the table's owner is in the way.
   */
  apply(plan: readonly NftOperation[], generation?: number): void;
  /** Whether the kernel knows these flags of a table: 6, owner and persist, from Linux 6.9 on. */
  knowsFlags(flags: number): boolean;
  /** Of every table, or of the table of that name in the family inet; elements are those of a table's set. */
  dump(kind: 'table' | 'chain' | 'rule' | 'set' | 'counter', table?: string): readonly NftObject[];
  dump(kind: 'element', table: string, set: string): readonly NftObject[];
  /** Grows by one with each batch that anyone applies. */
  generation(): number;
  /** By which the kernel knows this socket: it stands in the events and as a table's `owner`. */
  port(): number;
  /** To pass the socket to another process, which makes a `new NftSocket(descriptor)` of what it receives; nothing is to be changed here then. */
  descriptor(): number;
  /** Twice is well; every other call throws `EBADF` from then on. */
  close(): void;
}

/** What others have done since the last call. */
export interface NftChanges {
  /** One for each table and netlink port, however much was changed. `port` 0 is the kernel itself; the thread that did it, where the kernel says. */
  readonly tables: readonly {
    readonly family: number;
    readonly table: string;
    readonly port: number;
    readonly process?: number;
    readonly command?: string;
  }[];
  /** Events were lost: anything may have changed. */
  readonly overrun: boolean;
}

/**
 * Calls back, on a later turn, when others have changed any table of the network namespace (native/core/nft_watcher.h). Changes through the socket
 * of `ownPort` are not told. Does not keep the process alive.
 */
export interface NftWatcher {
  /** Around the load of many services: it takes seven times as long while anyone listens. What happens meanwhile is seen by the generation alone. */
  pause(): void;
  resume(): void;
  /** Nothing is called from then on; twice is well. */
  close(): void;
}
