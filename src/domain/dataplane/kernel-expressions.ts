import { type Ipv4Range, ipv4ToNumber } from '../kernel/network.js';
import { addressBytes, type Family, type FilterMarks, setName } from './kernel-model.js';
import type { RuleExpression, RuleOperation } from './ruleset.js';

// linux/netfilter/nf_tables.h, linux/netfilter/nf_conntrack_common.h
export const meta = { mark: 3, nfproto: 15, l4proto: 16 } as const;
export const ct = { state: 0, mark: 3 } as const;
export const states = { related: 4, new: 8 } as const;
export const compare = { equal: 0, unequal: 1 } as const;
const verdicts = { drop: 0, accept: 1, jump: -3, goto: -4, return: -5 } as const;
export const NETWORK_HEADER = 1;
const TRANSPORT_HEADER = 2;
const TCP = 6;
export const UDP = 17;

/** Registers of 4 bytes. */
export const FIRST = 8;
/** Where the packet's own mark, and what belongs to no key, waits. */
export const SPARE = 20;
const OTHER = 21;

interface Layout {
  readonly nfproto: number;
  readonly source: number;
  readonly destination: number;
  /** Registers of a service's key, and behind it of the slot. */
  readonly protocol: number;
  readonly port: number;
  readonly slot: number;
  /** Beyond the key, for an address. */
  readonly beyond: number;
  /** Of an endpoint: where its port stands behind the address. */
  readonly endpointPort: number;
  readonly natFamily: number;
}

export const layouts: Readonly<Record<Family, Layout>> = {
  4: { nfproto: 2, source: 12, destination: 16, protocol: 9, port: 10, slot: 11, beyond: 12, endpointPort: 9, natFamily: 2 },
  6: { nfproto: 10, source: 8, destination: 24, protocol: 12, port: 13, slot: 14, beyond: 16, endpointPort: 12, natFamily: 10 },
};

export function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** Of the address that stands at `offset` of an IPv4 header. */
export function isIn({ network, prefixLength }: Ipv4Range, offset: number): readonly RuleExpression[] {
  const mask = prefixLength === 0 ? 0 : (0xffff_ffff << (32 - prefixLength)) >>> 0;
  return [
    ['payload', FIRST, NETWORK_HEADER, offset, 4],
    ['bitwise', FIRST, FIRST, 4, numberBytes(mask), new Uint8Array(4)],
    ['cmp', FIRST, compare.equal, numberBytes(ipv4ToNumber(network) ?? 0)],
  ];
}

/** Destination, protocol and port of the packet, from the first register on. */
export function loadServiceKey(family: Family): readonly RuleExpression[] {
  const { destination, port, protocol } = layouts[family];
  return [
    ['payload', FIRST, NETWORK_HEADER, destination, addressBytes[family]],
    ['meta-load', meta.l4proto, protocol],
    ['payload', port, TRANSPORT_HEADER, 2, 2],
  ];
}

/** The slot is in its register: to the endpoint. Nothing happens where there is none. */
export function translate(family: Family, { ours }: FilterMarks): readonly RuleExpression[] {
  const { endpointPort, natFamily } = layouts[family];
  return [['lookup', setName('endpoint', family), FIRST, FIRST], ...markFlow(ours), ['nat', 1, natFamily, FIRST, endpointPort]];
}

export function loadAffinityKey(family: Family): readonly RuleExpression[] {
  const { destination, source } = layouts[family];
  const words = addressBytes[family] / 4;
  return [
    ['payload', FIRST, NETWORK_HEADER, source, addressBytes[family]],
    ['payload', FIRST + words, NETWORK_HEADER, destination, addressBytes[family]],
    ['meta-load', meta.l4proto, FIRST + 2 * words],
    ['payload', FIRST + 2 * words + 1, TRANSPORT_HEADER, 2, 2],
  ];
}

export function remember(family: Family, seconds: number): readonly RuleExpression[] {
  return [['dynset', setName('affinity', family), 1, FIRST, SPARE + 2, seconds * 1_000]];
}

/** The slot that stands beyond the key; by way of the mark, as `dispatch` says. */
export function toSlot(family: Family, marks: FilterMarks): readonly RuleExpression[] {
  const { slot } = layouts[family];
  return [
    ['meta-load', meta.mark, SPARE],
    ['meta-set', meta.mark, SPARE + 2],
    ...loadServiceKey(family),
    ['meta-load', meta.mark, slot],
    ['meta-set', meta.mark, SPARE],
    ...translate(family, marks),
  ];
}

export function markFlow(bit: number): readonly RuleExpression[] {
  return [
    ['ct-load', ct.mark, OTHER],
    ['bitwise', OTHER, OTHER, 4, word(~bit >>> 0), word(bit)],
    ['ct-set', ct.mark, OTHER],
  ];
}

export function masked(register: number, bits: number): RuleExpression {
  return ['bitwise', register, register, 4, word(bits), word(0)];
}

export function flags(mask: number): readonly RuleExpression[] {
  return [
    ['payload', FIRST, TRANSPORT_HEADER, 13, 1],
    ['bitwise', FIRST, FIRST, 1, Uint8Array.of(mask), Uint8Array.of(0)],
  ];
}

export function inState(bits: number): readonly RuleExpression[] {
  return [['ct-load', ct.state, FIRST], masked(FIRST, bits), ['cmp', FIRST, compare.unequal, word(0)]];
}

export function isFamily(family: Family): readonly RuleExpression[] {
  return [
    ['meta-load', meta.nfproto, FIRST],
    ['cmp', FIRST, compare.equal, Uint8Array.of(layouts[family].nfproto)],
  ];
}

export function isProtocol(number: number): readonly RuleExpression[] {
  return [
    ['meta-load', meta.l4proto, FIRST],
    ['cmp', FIRST, compare.equal, Uint8Array.of(number)],
  ];
}

export function isTcp(): readonly RuleExpression[] {
  return isProtocol(TCP);
}

export function verdict(name: keyof typeof verdicts, chain = ''): RuleExpression {
  return ['verdict', 0, verdicts[name] >>> 0, chain];
}

export function rule(chain: string, ...expressions: readonly RuleExpression[]): RuleOperation {
  return { kind: 'rule', chain, expressions };
}

export function baseChain(
  chain: string,
  type: string,
  hook: number,
  priority: number,
  jumps: readonly string[] = [],
): readonly RuleOperation[] {
  return [{ kind: 'chain', chain, type, hook, priority }, ...jumps.map((to) => rule(chain, verdict('jump', to)))];
}

function numberBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}
