import type { Ipv4Range } from '../kernel/network.js';

/** Bits of the conntrack mark (`ct mark`) and marks of packets that are ours; others keep theirs. */
export interface FilterMarks {
  /** Of a flow that was given an endpoint. */
  readonly ours: number;
  /** Of a flow that is to end: its next packet is answered by a reset. */
  readonly cut: number;
  /** SO_MARK of segments that we send for both ends of a flow to answer: they are not tracked. */
  readonly injected: number;
}

export const defaultMarks: FilterMarks = { ours: 0x2000_0000, cut: 0x4000_0000, injected: 0x0f11_d001 };

export interface FilterSettings {
  /** Of services' addresses: who has no endpoint is refused there. */
  readonly range: Ipv4Range;
  readonly marks: FilterMarks;
}

/** IPv4 and IPv6 have objects of their own, whose names end alike. */
export type Family = 4 | 6;
export const families: readonly Family[] = [4, 6];

/** Bytes of an address. */
export const addressBytes: Readonly<Record<Family, number>> = { 4: 4, 6: 16 };
/** Of address, protocol and port, each in registers of its own; with a slot 4 more. */
export const serviceKeyBytes: Readonly<Record<Family, number>> = { 4: 12, 6: 24 };
/** Of an endpoint's address and port. */
export const endpointBytes: Readonly<Record<Family, number>> = { 4: 8, 6: 20 };

/** How a new flow of a service gets its slot; the number is what the map of classes says. */
export const classOf = {
  random: (modulus: number) => modulus,
  hash: () => 0x1000_0000,
  /** Remembered for so many seconds after the client's last new flow. */
  affinity: (seconds: number) => 0x2000_0000 + seconds,
} as const;

export function setName(name: FilterSetName, family: Family): string {
  return `${name}${family}`;
}

/**
 * `service`: class of a service. `class`: chain of a class. `endpoint`: of service and slot. `affinity`: slot that a client had last. `local`:
 * instances of this node; `hairpin`: each with itself. `proxied`: services that the proxy answers.
 */
export type FilterSetName = 'service' | 'class' | 'endpoint' | 'affinity' | 'local' | 'hairpin' | 'proxied';
