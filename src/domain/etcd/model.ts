import type { Brand } from '../kernel/brand.js';
import { type IpAddress, ipAddress } from '../kernel/network.js';

/** Of one membership: a member that comes back on the same address has another one. */
export type MemberId = Brand<bigint, 'MemberId'>;

export interface EtcdMember {
  readonly id: MemberId;
  /** Empty: it has never started. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** It has no vote. */
  readonly isLearner: boolean;
  readonly isLeader: boolean;
  /** Why it is not healthy; undefined for one that answers and knows a leader. */
  readonly problem: string | undefined;
}

export interface EtcdRemovalPlan {
  readonly do: 'remove_etcd_member';
  readonly address: IpAddress;
}

export function memberId(value: bigint): MemberId {
  return BigInt.asUintN(64, value) as MemberId;
}

/** As etcdctl writes it: hex. */
export function formatMemberId(id: MemberId): string {
  return id.toString(16);
}

/** Undefined when it is none. */
export function parseMemberId(text: string): MemberId | undefined {
  return /^[0-9a-f]{1,16}$/i.test(text) ? (BigInt(`0x${text}`) as MemberId) : undefined;
}

/** As etcd takes it: scheme, an address and a port. Undefined when it is none. */
export function peerUrl(text: string): string | undefined {
  return /^https?:\/\/[^/]+:[1-9]\d{0,4}$/.test(text) && addressOf(text) !== undefined ? text : undefined;
}

/** The address in a URL, in its canonical form, IPv4 also where it is mapped into IPv6; undefined for a name. */
export function addressOf(url: string): IpAddress | undefined {
  const [, bracketed, plain] = /^[a-z]+:\/\/(?:\[([^\]]+)\]|([^/:[\]]+))(?::\d+)?\/?$/i.exec(url) ?? [];
  return unmapped(bracketed ?? plain ?? '');
}

/** Whether the host of one of its peer URLs is exactly that address: 10.0.0.1 is not 10.0.0.10. */
export function isAt({ peerUrls }: EtcdMember, address: IpAddress): boolean {
  const wanted = unmapped(address);
  return peerUrls.some((url) => addressOf(url) === wanted);
}

/** `::ffff:10.0.0.1`, however it is written, is 10.0.0.1. */
function unmapped(text: string): IpAddress | undefined {
  const address = ipAddress(text);
  return address?.startsWith('::ffff:') ? (ipAddress(address.slice('::ffff:'.length)) ?? address) : address;
}
