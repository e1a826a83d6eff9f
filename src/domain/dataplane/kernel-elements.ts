import { type IpAddress, ipv4ToNumber, ipv6Groups, isIpv6 } from '../kernel/network.js';
import { word } from './kernel-expressions.js';
import { addressBytes, endpointBytes, type Family, type FilterSetName, serviceKeyBytes, setName } from './kernel-model.js';
import type { Protocol } from './model.js';
import type { RuleOperation } from './ruleset.js';

export function familyOf(address: IpAddress): Family {
  return isIpv6(address) ? 6 : 4;
}

/** Network byte order. */
export function addressOf(address: IpAddress): Uint8Array {
  if (!isIpv6(address)) return bigEndian(4, [[0, ipv4ToNumber(address) ?? 0, 4]]);
  return bigEndian(
    16,
    (ipv6Groups(address) ?? []).map((group, index) => [2 * index, group, 2]),
  );
}

/** Each field padded to 4 bytes. */
export function serviceKey(address: IpAddress, protocol: Protocol, port: number): Uint8Array {
  const bytes = addressBytes[familyOf(address)];
  const key = bigEndian(bytes + 8, [
    [bytes, protocol === 'tcp' ? 6 : 17, 1],
    [bytes + 4, port, 2],
  ]);
  key.set(addressOf(address));
  return key;
}

export function endpointKey(service: Uint8Array, slot: number): Uint8Array {
  return joined([service, word(slot)]);
}

export function endpointValue(address: IpAddress, port: number): Uint8Array {
  const bytes = addressBytes[familyOf(address)];
  const value = bigEndian(bytes + 4, [[bytes, port, 2]]);
  value.set(addressOf(address));
  return value;
}

/** Bytes of a key of that set, and of what it leads to. */
const sizes: Readonly<
  Record<Exclude<FilterSetName, 'class' | 'affinity'>, (family: Family) => { readonly key: number; readonly data?: number }>
> = {
  service: (family) => ({ key: serviceKeyBytes[family], data: 4 }),
  endpoint: (family) => ({ key: serviceKeyBytes[family] + 4, data: endpointBytes[family] }),
  local: (family) => ({ key: addressBytes[family] }),
  hairpin: (family) => ({ key: 2 * addressBytes[family] }),
  proxied: (family) => ({ key: serviceKeyBytes[family] }),
};
export type ElementSet = keyof typeof sizes;

/** Elements that are added or deleted, set by set, until they are made operations. */
export class Elements {
  readonly #bySet = new Map<string, { readonly set: ElementSet; readonly family: Family; readonly parts: Uint8Array[] }>();

  /** `data` only where elements of a map are added. */
  push(set: ElementSet, family: Family, key: Uint8Array, data?: Uint8Array): void {
    const name = setName(set, family);
    let entry = this.#bySet.get(name);
    if (entry === undefined) {
      entry = { set, family, parts: [] };
      this.#bySet.set(name, entry);
    }
    entry.parts.push(key);
    if (data !== undefined) entry.parts.push(data);
  }

  operations(kind: 'add-elements' | 'delete-elements'): readonly RuleOperation[] {
    return [...this.#bySet].map(([name, { set, family, parts }]) => {
      const { key, data } = sizes[set](family);
      const dataBytes = kind === 'add-elements' && data !== undefined ? { dataBytes: data } : {};
      return { kind, set: name, keyBytes: key, ...dataBytes, packed: joined(parts) };
    });
  }
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** For keys of maps: one letter a byte. */
export function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

function bigEndian(length: number, fields: readonly (readonly [offset: number, value: number, bytes: 1 | 2 | 4])[]): Uint8Array {
  const made = new Uint8Array(length);
  const view = new DataView(made.buffer);
  for (const [offset, value, bytes] of fields) {
    if (bytes === 1) view.setUint8(offset, value);
    else if (bytes === 2) view.setUint16(offset, value);
    else view.setUint32(offset, value);
  }
  return made;
}
