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
  let rest = text;
  const tail: number[] = [];
  const lastColon = text.lastIndexOf(':');
  if (text.includes('.')) {
    const v4 = ipv4ToNumber(text.slice(lastColon + 1));
    if (v4 === undefined || lastColon < 0) return undefined;
    tail.push(Math.floor(v4 / 65_536), v4 % 65_536);
    rest = text.slice(0, lastColon);
    if (rest.endsWith(':')) rest += ':';
  }
  const halves = rest.split('::');
  if (halves.length > 2) return undefined;
  const head = groupsOf(halves[0] ?? '');
  const middle = halves.length === 2 ? groupsOf(halves[1]?.replace(/:$/, '') ?? '') : [];
  if (head === undefined || middle === undefined) return undefined;
  const present = head.length + middle.length + tail.length;
  if (halves.length === 1 ? present !== 8 : present > 7) return undefined;
  return [...head, ...Array<number>(8 - present).fill(0), ...middle, ...tail];
}

function groupsOf(text: string): number[] | undefined {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : undefined;
}

/** RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups as `::`. */
function formatIpv6(groups: readonly number[]): string {
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
