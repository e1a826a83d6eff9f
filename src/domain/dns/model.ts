import type { DomainName } from './name.js';

/** Of RFC 1035, 3596, 2782 and 6891: those that are made, or whose data holds names. Others are numbers. */
export const types = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  DNAME: 39,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;

export const classes = { IN: 1, CH: 3, NONE: 254, ANY: 255 } as const;

/** BADVERS needs EDNS: its upper bits stand in the OPT record (RFC 6891, 6.1.3). */
export const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, BADVERS: 16 } as const;
export type Rcode = number;

export interface Question {
  readonly name: DomainName;
  readonly type: number;
  readonly class: number;
}

/** The data of a record: names apart from the bytes around them, so that they can be compressed. */
export type RecordData = readonly (Uint8Array | DomainName)[];

export interface ResourceRecord {
  readonly name: DomainName;
  readonly type: number;
  readonly class: number;
  /** Seconds. */
  readonly ttl: number;
  readonly data: RecordData;
}

/** What an OPT record says (RFC 6891). */
export interface Edns {
  /** Of UDP, what its sender can take; at least 512. */
  readonly payloadBytes: number;
  readonly version: number;
  /** Whether signatures are wanted. */
  readonly isDnssecOk: boolean;
}

export interface Message {
  readonly id: number;
  readonly isResponse: boolean;
  readonly opcode: number;
  readonly isAuthoritative: boolean;
  readonly isTruncated: boolean;
  readonly recursionDesired: boolean;
  readonly recursionAvailable: boolean;
  readonly rcode: Rcode;
  readonly questions: readonly Question[];
  readonly answers: readonly ResourceRecord[];
  readonly authority: readonly ResourceRecord[];
  /** Without the OPT record. */
  readonly additional: readonly ResourceRecord[];
  readonly edns: Edns | undefined;
}

/** `type` as people write it; `TYPE65` of those that have no name here (RFC 3597). */
export function formatType(type: number): string {
  return Object.entries(types).find(([, number]) => number === type)?.[0] ?? `TYPE${type}`;
}

export function formatRcode(rcode: Rcode): string {
  return Object.entries(rcodes).find(([, number]) => number === rcode)?.[0] ?? `RCODE${rcode}`;
}
