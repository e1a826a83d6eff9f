import { type IpAddress, ipv4ToNumber, ipv6Groups } from '../kernel/network.js';
import type { RecordData } from './model.js';
import type { DomainName } from './name.js';

/** Of a character string (RFC 1035, 3.3). */
const MAX_STRING_BYTES = 255;

/** Of an A or an AAAA record. */
export function addressData(address: IpAddress): RecordData {
  const ipv4 = ipv4ToNumber(address);
  if (ipv4 !== undefined) return [u32(ipv4)];
  return [Uint8Array.from((ipv6Groups(address) ?? []).flatMap((group) => [group >> 8, group & 0xff]))];
}

/** Of NS, CNAME and PTR. */
export function nameData(name: DomainName): RecordData {
  return [name];
}

/** @param numbers serial, refresh, retry, expire and minimum, seconds but for the first (RFC 1035, 3.3.13) */
export function soaData(server: DomainName, mailbox: DomainName, numbers: readonly number[]): RecordData {
  return [server, mailbox, Uint8Array.from(numbers.flatMap((number) => [...u32(number)]))];
}

/** Of SRV: the only target, so its priority and weight say nothing (RFC 2782). */
export function serviceData(port: number, target: DomainName): RecordData {
  return [Uint8Array.of(0, 0, 0, 1, port >> 8, port & 0xff), target];
}

/** Of TXT, in ASCII. */
export function textData(text: string): RecordData {
  const bytes = Array.from(text.slice(0, MAX_STRING_BYTES), (character) => character.charCodeAt(0) & 0x7f);
  return [Uint8Array.of(bytes.length, ...bytes)];
}

function u32(value: number): Uint8Array {
  return Uint8Array.from([24, 16, 8, 0], (shift) => Math.floor(value / 2 ** shift) % 256);
}
