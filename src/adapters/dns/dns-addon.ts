import type { BindFailure } from '../../ports/dataplane/data-plane.js';
import type { DnsResponderStats } from '../../ports/dns/dns-responder.js';

export interface NativeQuestion {
  readonly handle?: number;
  readonly query: Uint8Array;
  readonly address: string;
  readonly port: number;
}

/** Of each address, in order; without a reason it is listened to. */
export interface NativeListenResult {
  readonly reason?: BindFailure;
  readonly detail?: string;
}

export interface NativeDnsStats extends Omit<DnsResponderStats, 'answered'> {
  /** Rows of native/core/dns_counters.h. */
  readonly answered: Float64Array;
}

/** native/binding/dns_object.h. Wrong arguments throw a TypeError, all but a second `stop` an Error once it is stopped. */
export interface NativeDnsResponder {
  /** Address, port, address, port. */
  listen(...addresses: readonly (string | number)[]): readonly NativeListenResult[];
  apply(delta: Uint8Array): Promise<void>;
  /** @param variant bit 0 is DO, bit 1 is CD */
  putCached(message: Uint8Array, variant: number, lifeMs: number, refreshAfterMs: number): void;
  removeCached(message: Uint8Array, variant: number): void;
  clearCached(): void;
  answer(handle: number, message: Uint8Array | undefined): void;
  stats(): NativeDnsStats;
  stop(): void;
}

/** The columns and rows of `NativeDnsStats.answered`. */
export const countedTypes = ['A', 'NS', 'SOA', 'PTR', 'TXT', 'AAAA', 'SRV', 'ANY', 'other', 'none'] as const;
export const countedRcodes = [
  ...['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'BADVERS', 'other', 'none'],
] as const;
