import type { DomainName } from './name.js';

/** The whole answer to one type of question for a name, but for what each question brings along: id, case of the name, RD, EDNS. */
export interface ReadyAnswer {
  readonly type: number;
  /** How many records of each section the body holds. */
  readonly answers: number;
  readonly authority: number;
  readonly additional: number;
  /** What stands behind the question, as it is sent; pointers are of the message in which the name is written out at 12. */
  readonly body: Uint8Array;
}

/** A name that is there. One without answers is there for those below it. */
export interface ReadyName {
  /** In lower case. */
  readonly name: DomainName;
  /** ANY is answered with the first (RFC 8482, 4.1). */
  readonly answers: readonly ReadyAnswer[];
}

/** Names that come and go together. */
export interface ReadyGroup {
  /** Whose they are: `default/hello`. */
  readonly id: string;
  readonly names: readonly ReadyName[];
}

/** Where a zone begins: what is below it and not in the table does not exist. */
export interface ReadyApex {
  readonly name: DomainName;
  /** Of the SOA record, but for the serial, which all share. */
  readonly server: DomainName;
  readonly mailbox: DomainName;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  /** Seconds, of the SOA record and of what does not exist. */
  readonly ttl: number;
  /** A reverse zone: what is between it and an address is there, though nothing is said about it. */
  readonly isReverse: boolean;
}

export interface ZoneDelta {
  readonly serial: number;
  /** All of them, when they have changed. */
  readonly apexes?: readonly ReadyApex[] | undefined;
  readonly remove: readonly string[];
  /** Each whole: names that it had before and has no more are gone. */
  readonly upsert: readonly ReadyGroup[];
}
