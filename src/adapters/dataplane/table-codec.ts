import type { Algorithm, L4Endpoint, Protocol } from '../../domain/dataplane/model.js';
import { type IpAddress, ipAddress, ipv4ToNumber, ipv6Groups, isIpv6, numberToIpv4 } from '../../domain/kernel/network.js';
import type { ListenerSpec } from '../../ports/dataplane/data-plane.js';

/** A listener with its number in the native table. */
export interface NumberedListener {
  readonly number: number;
  readonly spec: ListenerSpec;
}

const magic = 0x4454_4648; // "HFTD"
const version = 2;
const headerSize = 16;
const removeSize = 4;
const upsertSize = 52;
const endpointSize = 24;

const protocols = { tcp: 0, udp: 1 } as const satisfies Record<Protocol, number>;
const algorithms = {
  random: 0,
  'round-robin': 1,
  'least-connections': 2,
  'source-hash': 3,
} as const satisfies Record<Algorithm, number>;

/** Slow enough for a lost SYN to be repeated once (after 1 s, RFC 6298), fast enough that the next endpoint is tried before clients give up. */
export const defaultConnectTimeoutMs = 3_000;

/**
 * A table delta as native/core/table_codec.h describes it. The native side checks everything again.
 * @throws RangeError when a listener has more than 65,535 endpoints.
 */
export function encodeTableDelta(remove: readonly number[], upsert: readonly NumberedListener[]): Uint8Array {
  const endpoints = upsert.reduce((sum, { spec }) => sum + spec.endpoints.length, 0);
  const bytes = new Uint8Array(headerSize + remove.length * removeSize + upsert.length * upsertSize + endpoints * endpointSize);
  const out = new Writer(bytes);
  out.u32(magic);
  out.u16(version);
  out.u16(0);
  out.u32(remove.length);
  out.u32(upsert.length);
  for (const number of remove) out.u32(number);
  for (const listener of upsert) writeListener(out, listener);
  return bytes;
}

function writeListener(out: Writer, { number, spec }: NumberedListener): void {
  if (spec.endpoints.length > 0xffff)
    throw new RangeError(`${spec.id} has ${spec.endpoints.length} endpoints, at most 65535 are possible`);
  out.u32(number);
  out.u8(family(spec.address));
  out.u8(protocols[spec.protocol]);
  out.u8(algorithms[spec.algorithm]);
  out.u8(spec.acceptProxy ? 1 : 0);
  out.u8(spec.sendProxy);
  out.u8(spec.refuse ? 1 : 0);
  out.u16(spec.listenPort);
  out.u32(spec.drainMs);
  out.u32(spec.connectTimeoutMs ?? defaultConnectTimeoutMs);
  out.u32(spec.affinityMs);
  out.u32(spec.idleMs);
  out.u32(spec.maxConnections);
  out.u16(spec.endpoints.length);
  out.u16(0);
  out.address(spec.address);
  for (const endpoint of spec.endpoints) writeEndpoint(out, endpoint);
}

function writeEndpoint(out: Writer, { address, port, weight, tier }: L4Endpoint): void {
  out.u8(family(address));
  out.u8(weight);
  out.u8(tier);
  out.u8(0);
  out.u16(port);
  out.u16(0);
  out.address(address);
}

function family(address: IpAddress): number {
  return isIpv6(address) ? 6 : 4;
}

class Writer {
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer);
  }

  u8(value: number): void {
    this.#view.setUint8(this.#at, value);
    this.#at += 1;
  }

  u16(value: number): void {
    this.#view.setUint16(this.#at, value, true);
    this.#at += 2;
  }

  u32(value: number): void {
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
  }

  /** In network order, IPv4 in the first four bytes. */
  address(address: IpAddress): void {
    const v4 = ipv4ToNumber(address);
    if (v4 === undefined) {
      const groups = ipv6Groups(address) ?? [];
      for (const [index, group] of groups.entries()) this.#view.setUint16(this.#at + 2 * index, group);
    } else {
      this.#view.setUint32(this.#at, v4);
    }
    this.#at += 16;
  }
}

/** The address of a row of counters: four big-endian words. @throws RangeError when it is none. */
export function addressOfWords(addressFamily: number, words: readonly number[]): IpAddress {
  if (addressFamily !== 6) return numberToIpv4(words[0] ?? -1);
  const groups = words.flatMap((word) => [Math.floor(word / 65_536), word % 65_536]);
  const text = groups.map((group) => group.toString(16)).join(':');
  const address = ipAddress(text);
  if (address === undefined) throw new RangeError(`not an address: ${text}`);
  return address;
}
