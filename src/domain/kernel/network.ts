import type { Brand } from './brand.js';

/** An IPv4 or IPv6 address in its canonical text form (RFC 5952), without zone. */
export type IpAddress = Brand<string, 'IpAddress'>;
/** A TCP or UDP port that can be listened on or dialled, 1 to 65535. */
export type PortNumber = Brand<number, 'PortNumber'>;

export function portNumber(value: number): PortNumber | undefined {
  return Number.isInteger(value) && value >= 1 && value <= 65_535 ? (value as PortNumber) : undefined;
}

/** `undefined` when `text` is not an address. `01.2.3.4` is none: some readers take it as octal. */
export function ipAddress(text: string): IpAddress | undefined {
  if (ipv4ToNumber(text) !== undefined) return text as IpAddress;
  const groups = ipv6Groups(text);
  return groups === undefined ? undefined : (formatIpv6(groups) as IpAddress);
}

export function isIpv6(address: IpAddress): boolean {
  return address.includes(':');
}

/** `address:port`, with brackets around IPv6. */
export function formatAddressPort(address: IpAddress, port: number): string {
  return isIpv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

export function ipv4ToNumber(text: string): number | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return undefined;
  let value = 0;
  for (const part of match.slice(1)) {
    const octet = Number(part);
    if (octet > 255 || String(octet) !== part) return undefined;
    value = value * 256 + octet;
  }
  return value;
}

/** @throws RangeError when `value` is not an unsigned 32-bit integer. */
export function numberToIpv4(value: number): IpAddress {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) throw new RangeError(`not an IPv4 address: ${value}`);
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.') as IpAddress;
}

/** The eight 16-bit groups of an address that `ipAddress` accepted as IPv6. */
export function ipv6Groups(text: string): readonly number[] | undefined {
  const halves = withoutDottedTail(text)?.split('::');
  if (halves === undefined || halves.length > 2) return undefined;
  const head = groupsOf(halves[0] ?? '');
  const tail = groupsOf(halves[1] ?? '');
  if (head === undefined || tail === undefined) return undefined;
  const present = head.length + tail.length;
  // `::` stands for at least one group.
  if (halves.length === 1 ? present !== 8 : present > 7) return undefined;
  return [...head, ...Array<number>(8 - present).fill(0), ...tail];
}

/** `::ffff:1.2.3.4` as `::ffff:102:304`; `undefined` when there are dots that are no IPv4 address at the end. */
function withoutDottedTail(text: string): string | undefined {
  if (!text.includes('.')) return text;
  const start = text.lastIndexOf(':') + 1;
  const v4 = ipv4ToNumber(text.slice(start));
  if (v4 === undefined || start === 0) return undefined;
  return `${text.slice(0, start)}${Math.floor(v4 / 65_536).toString(16)}:${(v4 % 65_536).toString(16)}`;
}

function groupsOf(text: string): number[] | undefined {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : undefined;
}

/**
 * RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as `::`, and IPv4-mapped addresses
 * (its section 5) as `::ffff:1.2.3.4`, which is also what inet_ntop(3) prints.
 */
function formatIpv6(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  if (groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return `::ffff:${numberToIpv4(high * 65_536 + low)}`;
  }
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':');
  if (best.start < 0) return hex(groups);
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`;
}

export interface AddressPort {
  readonly address: IpAddress;
  readonly port: PortNumber;
}

/** The inverse of `formatAddressPort`: `10.0.0.1:80` or `[::1]:80`. */
export function addressPort(text: string): AddressPort | undefined {
  const match = /^(?:\[([^\]]*:[^\]]*)\]|([^:[\]]+)):([1-9]\d{0,4})$/.exec(text);
  if (match === null) return undefined;
  const address = ipAddress(match[1] ?? match[2] ?? '');
  const port = portNumber(Number(match[3]));
  return address === undefined || port === undefined ? undefined : { address, port };
}

/** A DNS name or an address, and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: PortNumber;
}

/** `control.example:9192` or `[fd00::1]:9192`; without a port it has `fallback`. `undefined` when it is none. */
export function hostPort(text: string, fallback: PortNumber): HostPort | undefined {
  const whole = ipAddress(text);
  if (whole !== undefined) return { host: whole, port: fallback };
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::([1-9]\d{0,4}))?$/.exec(text);
  const host = match?.[1] === undefined ? match?.[2] : ipAddress(match[1]);
  const port = match?.[3] === undefined ? fallback : portNumber(Number(match[3]));
  return host === undefined || port === undefined || !isHost(host) ? undefined : { host, port };
}

export function formatHostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** An address, or a name of DNS labels (RFC 1123), which a number at the end would make a misspelt address. */
export function isHost(text: string): boolean {
  if (ipAddress(text) !== undefined) return true;
  const labels = text.split('.');
  const isLabel = (label: string) => /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label);
  return text.length <= 253 && labels.every(isLabel) && !/^\d+$/.test(labels.at(-1) ?? '');
}

/** Whether packets to it never leave the machine: 127.0.0.0/8, `::1`, and the former mapped into IPv6. */
export function isLoopback(address: IpAddress): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}

/** An IPv4 network, whose address has no bits behind the prefix. */
export interface Ipv4Range {
  readonly network: IpAddress;
  readonly prefixLength: number;
}

/** `10.192.0.0/16`; `undefined` when it is no network, or has bits behind the prefix. */
export function ipv4Range(text: string): Ipv4Range | undefined {
  const match = /^([\d.]+)\/(0|[1-9]\d?)$/.exec(text);
  const value = ipv4ToNumber(match?.[1] ?? '');
  const prefixLength = Number(match?.[2]);
  if (value === undefined || prefixLength > 32 || value % 2 ** (32 - prefixLength) !== 0) return undefined;
  return { network: numberToIpv4(value), prefixLength };
}

export function formatIpv4Range({ network, prefixLength }: Ipv4Range): string {
  return `${network}/${prefixLength}`;
}

/** Whether every address of `inner` is one of `outer`. */
export function containsRange(outer: Ipv4Range, inner: Ipv4Range): boolean {
  const size = 2 ** (32 - outer.prefixLength);
  const offset = (ipv4ToNumber(inner.network) ?? 0) - (ipv4ToNumber(outer.network) ?? 0);
  return inner.prefixLength >= outer.prefixLength && offset >= 0 && offset < size;
}
