import type { ZoneDelta } from '../../domain/dns/ready.js';
import type { AddressPort } from '../../domain/kernel/network.js';
import type { CallOptions } from '../call-options.js';
import type { BindFailure } from '../dataplane/data-plane.js';

/** How an address came out. */
export type DnsListenResult =
  | { readonly at: AddressPort; readonly listening: true }
  | { readonly at: AddressPort; readonly listening: false; readonly reason: BindFailure; readonly detail: string };

/** A question that no table answers. */
export interface HandedQuestion {
  /** To be given back by `answer`, once; undefined: it has been answered from the cache, and its entry is due for a refresh. */
  readonly handle: number | undefined;
  /** A whole message with one question, in its case; well-formed, of opcode QUERY, EDNS version 0 or none. */
  readonly query: Uint8Array;
  /** Who asks, for limits and the query log. */
  readonly client: AddressPort;
}

/** An answer of somebody else, positive or negative, that is given until it expires; its TTLs are counted down. */
export interface CacheEntry {
  /** The whole response without an OPT record; its question, of class IN, is what is answered. Its id, RD and CD are the asker's each time. */
  readonly message: Uint8Array;
  /** Entries are apart by DO and CD of the query (RFC 4035, 3.2): with signatures or without, checked or not. */
  readonly isDnssecOk: boolean;
  readonly isCheckingDisabled: boolean;
  /** From now on, milliseconds. */
  readonly lifeMs: number;
  /** The first one who asks later than this from now on is told as a HandedQuestion without a handle; undefined: nobody is. */
  readonly refreshAfterMs?: number | undefined;
}

/** Which entry: a whole message with the question, as `CacheEntry.message`. */
export type CacheKey = Pick<CacheEntry, 'message' | 'isDnssecOk' | 'isCheckingDisabled'>;

export interface DnsCount {
  /** `A`; `none` where there was no question that could be read, `other` for what is not counted apart. */
  readonly type: string;
  /** `NOERROR`; `none` where nothing was sent. */
  readonly rcode: string;
  readonly count: number;
}

/** Since the start; they never go down. */
export interface DnsResponderStats {
  readonly answered: readonly DnsCount[];
  /** Of them, from the cache. */
  readonly cacheHits: number;
  readonly handedUp: number;
  /** Questions that were to be handed up while as many as there may be were waiting; nobody answers them. */
  readonly droppedQuestions: number;
  /** Answers that the kernel did not take: its buffer was full, or the asker cannot be reached. */
  readonly droppedAnswers: number;
  /** Cut to what the asker takes by UDP, with TC set. */
  readonly truncated: number;
  /** At present. */
  readonly names: number;
  readonly cached: number;
  readonly waiting: number;
  readonly threads: number;
}

export interface DnsResponderEvents {
  /** On the main thread. Each question with a handle is to be given back by `answer`. */
  readonly onQuestion: (question: HandedQuestion) => void;
}

/**
 * The threads that answer by UDP, whatever the main thread does: from the zone, then from the cache. What neither has is handed up, at most
 * 1,024 at a time; names outside the zone are refused (REFUSED) while there is nobody to hand them to.
 */
export interface DnsResponder {
  /** Starts the threads, which listen nowhere. Without `events` nothing is handed up. */
  start(events?: DnsResponderEvents): void;

  /**
   * From now on exactly these are listened to, and says how each came out, in order; those that are listened to already go on without a gap.
   * One failure affects no other.
   */
  listen(addresses: readonly AddressPort[]): readonly DnsListenResult[];

  /**
   * Questions are answered by the new table when it resolves, each either by the old one or by the new one. Costs O(delta). The same again
   * changes nothing. Calls take effect in order; on abort nothing has changed. The first one must bring the apexes.
   */
  apply(delta: ZoneDelta, options: CallOptions): Promise<void>;

  /**
   * Keeps at most 10,000 entries: the oldest gives way. Entries of the zone's names are never looked at. Takes effect soon after.
   * @throws TypeError for what is no response with one question of class IN
   */
  putCached(entries: readonly CacheEntry[]): void;
  removeCached(keys: readonly CacheKey[]): void;
  clearCached(): void;

  /**
   * Sends the answer to who asked, as it is, cut to what that takes by UDP if need be; undefined: nothing is sent. A handle that was given back before is ignored.
   * The id, the case of the name and the OPT record are the answer's own.
   */
  answer(handle: number, message: Uint8Array | undefined): void;

  stats(): DnsResponderStats;

  /** All threads have ended and the sockets are closed when it resolves. Safe before `start`, and twice. */
  stop(): Promise<void>;
}
