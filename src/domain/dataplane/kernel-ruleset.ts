import type { Ipv4Range } from '../kernel/network.js';
import {
  baseChain,
  compare,
  ct,
  FIRST,
  flags,
  inState,
  isFamily,
  isIn,
  isProtocol,
  isTcp,
  layouts,
  loadAffinityKey,
  loadServiceKey,
  markFlow,
  masked,
  meta,
  NETWORK_HEADER,
  remember,
  rule,
  SPARE,
  states,
  toSlot,
  translate,
  UDP,
  verdict,
  word,
} from './kernel-expressions.js';
import {
  addressBytes,
  classOf,
  endpointBytes,
  type Family,
  type FilterMarks,
  type FilterSetName,
  type FilterSettings,
  families,
  setName,
} from './kernel-model.js';
import { FIXED_MODULUS, moduli } from './kernel-slots.js';
import type { RuleBatch, RuleExpression, RuleOperation } from './ruleset.js';

// linux/netfilter.h, linux/netfilter/nf_tables.h
const hooks = { prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 } as const;
const setFlags = { map: 8, timeout: 16, dynamic: 32 } as const;
const VERDICT_DATA = 0xffff_ff00;
const [SYN_AND_ACK, SYN, RST] = [0x12, 0x02, 0x04];
/** As nft(8) numbers them, 6 bits each in a concatenation. */
const types = { ipv4: 7, ipv6: 8, protocol: 12, service: 13, mark: 19 } as const;

/** Everything of the table that no service changes. */
export function baseRuleset({ range, marks }: FilterSettings): RuleBatch {
  return [
    ...families.flatMap((family) => [...sets(family), ...randomChains(family, marks), ...hashChain(family, marks)]),
    ...families.flatMap((family) => classElements(family)),
    ...families.flatMap((family) => dispatch(family)),
    ...translation(range, marks),
    ...untracking(marks),
    ...refusal(range),
    ...cutting(marks),
  ];
}

export function randomChain(family: Family, modulus: number): string {
  return `r${family}-${modulus}`;
}

export function hashChainName(family: Family): string {
  return `h${family}`;
}

export function affinityChain(family: Family, seconds: number): string {
  return `a${family}-${seconds}`;
}

/** Of services whose clients keep their slot for so long. */
export function affinityClass(family: Family, seconds: number, marks: FilterMarks): readonly RuleOperation[] {
  const chain = affinityChain(family, seconds);
  const random: RuleExpression = ['numgen', SPARE + 2, FIXED_MODULUS, 1, 0];
  return [
    { kind: 'chain', chain },
    rule(
      chain,
      ...loadAffinityKey(family),
      ['lookup', setName('affinity', family), FIRST, SPARE + 2],
      ...remember(family, seconds),
      ...toSlot(family, marks),
    ),
    rule(chain, ...loadAffinityKey(family), random, ...remember(family, seconds), ...toSlot(family, marks)),
    // The map is full: served without being remembered.
    rule(chain, random, ...toSlot(family, marks)),
    classElement(family, classOf.affinity(seconds), chain),
  ];
}

export function classElement(family: Family, id: number, chain: string): RuleOperation {
  return { kind: 'add-elements', set: setName('class', family), keyBytes: 4, packed: word(id), chains: [chain] };
}

function sets(family: Family): readonly RuleOperation[] {
  const address = addressBytes[family];
  const service = [address, 1, 2];
  const addressType = types[family === 4 ? 'ipv4' : 'ipv6'];
  const serviceType = concatenated(addressType, types.protocol, types.service);
  const endpointType = concatenated(addressType, types.service);
  const plain = (name: FilterSetName, keyType: number, fields: readonly number[]): RuleOperation => ({
    kind: 'set',
    set: setName(name, family),
    keyType,
    fields,
  });
  const map = (
    name: FilterSetName,
    keyType: number,
    fields: readonly number[],
    dataType: number,
    dataBytes: number,
  ): RuleOperation => ({
    ...{ kind: 'set', set: setName(name, family), keyType, fields },
    ...{ flags: setFlags.map, dataType, dataBytes },
  });
  return [
    map('service', serviceType, service, types.mark, 4),
    map('class', types.mark, [4], VERDICT_DATA, 0),
    map(
      'endpoint',
      concatenated(addressType, types.protocol, types.service, types.mark),
      [...service, 4],
      endpointType,
      endpointBytes[family],
    ),
    {
      ...{ kind: 'set', set: setName('affinity', family), flags: setFlags.map | setFlags.timeout | setFlags.dynamic },
      ...{ keyType: concatenated(addressType, addressType, types.protocol, types.service), fields: [address, ...service] },
      ...{ dataType: types.mark, dataBytes: 4, size: 262_144, timeoutMs: 10_800_000 },
    },
    plain('local', addressType, [address]),
    plain('hairpin', concatenated(addressType, addressType), [address, address]),
    plain('proxied', serviceType, service),
  ];
}

function randomChains(family: Family, marks: FilterMarks): readonly RuleOperation[] {
  const { slot } = layouts[family];
  return moduli.flatMap((modulus) => {
    const chain = randomChain(family, modulus);
    return [
      { kind: 'chain', chain } as const,
      rule(chain, ...loadServiceKey(family), ['numgen', slot, modulus, 1, 0], ...translate(family, marks)),
    ];
  });
}

/** One client address, one slot. */
function hashChain(family: Family, marks: FilterMarks): readonly RuleOperation[] {
  const { beyond, slot, source } = layouts[family];
  const chain = hashChainName(family);
  const length = addressBytes[family];
  return [
    { kind: 'chain', chain },
    rule(
      chain,
      ...loadServiceKey(family),
      ['payload', beyond, NETWORK_HEADER, source, length],
      ['jhash', beyond, slot, length, FIXED_MODULUS, 0x5eed, 0, 0],
      ...translate(family, marks),
    ),
  ];
}

function classElements(family: Family): readonly RuleOperation[] {
  return [
    ...moduli.map((modulus) => classElement(family, classOf.random(modulus), randomChain(family, modulus))),
    classElement(family, classOf.hash(), hashChainName(family)),
  ];
}

/**
 * From service to class to chain. The class goes through the packet's mark, which has its own value again at the end: nft(8) 1.0.6 ends itself
 * when it is to list one lookup that feeds another.
 */
function dispatch(family: Family): readonly RuleOperation[] {
  const chain = `services${family}`;
  return [
    { kind: 'chain', chain },
    rule(
      chain,
      ['meta-load', meta.mark, SPARE],
      ...loadServiceKey(family),
      ['lookup', setName('service', family), FIRST, FIRST],
      ['meta-set', meta.mark, FIRST],
      ['meta-load', meta.mark, FIRST],
      ['meta-set', meta.mark, SPARE],
      ['lookup', setName('class', family), FIRST, 0],
    ),
  ];
}

/** Only what begins is given an endpoint: then a service can move between kernel and proxy without a flow being torn. */
function translation(range: Ipv4Range, { ours }: FilterMarks): readonly RuleOperation[] {
  const hairpin = (family: Family) =>
    rule(
      'nat-post',
      ...isFamily(family),
      ['payload', FIRST, NETWORK_HEADER, layouts[family].source, addressBytes[family]],
      ['payload', FIRST + addressBytes[family] / 4, NETWORK_HEADER, layouts[family].destination, addressBytes[family]],
      ['member', setName('hairpin', family), FIRST, 0],
      ['masquerade'],
    );
  // Replies of what passes from one host to another have to pass here.
  const transit = (family: Family) =>
    rule(
      'nat-post',
      ...isFamily(family),
      ['payload', FIRST, NETWORK_HEADER, layouts[family].source, addressBytes[family]],
      ['member', setName('local', family), FIRST, 1],
      ['payload', FIRST, NETWORK_HEADER, layouts[family].destination, addressBytes[family]],
      ['member', setName('local', family), FIRST, 1],
      ['fib', FIRST, 3, 1],
      ['cmp', FIRST, compare.unequal, word(2)],
      ['masquerade'],
    );
  return [
    { kind: 'chain', chain: 'services' },
    rule('services', ...isTcp(), ...flags(SYN_AND_ACK), ['cmp', FIRST, compare.unequal, Uint8Array.of(SYN)], verdict('return')),
    ...families.map((family) => rule('services', ...isFamily(family), verdict('goto', `services${family}`))),
    ...baseChain('nat-pre', 'nat', hooks.prerouting, -110, ['services']),
    ...baseChain('nat-out', 'nat', hooks.output, -110, ['services']),
    ...baseChain('nat-post', 'nat', hooks.postrouting, 90),
    rule('nat-post', ['ct-load', ct.mark, FIRST], masked(FIRST, ours), ['cmp', FIRST, compare.equal, word(0)], verdict('return')),
    fromServiceAddress(range),
    ...families.map(hairpin),
    ...families.map(transit),
  ];
}

/**
 * Programs of this host: their packets to a service have its address as source too, since all of the range is the host's own. They get that of
 * the interface that they leave by, whichever it is.
 */
function fromServiceAddress(range: Ipv4Range): RuleOperation {
  return rule('nat-post', ...isFamily(4), ...isIn(range, layouts[4].source), ['masquerade']);
}

/** Segments of our own that are to be answered belong to no flow. */
function untracking({ injected }: FilterMarks): readonly RuleOperation[] {
  return [
    ...baseChain('raw-out', 'filter', hooks.output, -300),
    rule('raw-out', ['meta-load', meta.mark, FIRST], ['cmp', FIRST, compare.equal, word(injected)], ['notrack']),
  ];
}

/** At the addresses of services nobody but a service answers: no program that listens on all addresses, such as sshd(8). */
function refusal(range: Ipv4Range): readonly RuleOperation[] {
  const proxied = (family: Family) =>
    rule(
      'refusable',
      ...isFamily(family),
      ...loadServiceKey(family),
      ['member', setName('proxied', family), FIRST, 0],
      verdict('return'),
    );
  return [
    { kind: 'chain', chain: 'refuse' },
    rule('refuse', ...isTcp(), ['counter'], ['reject', 1, 0]),
    rule('refuse', ['counter'], ['reject', 2, 1]),
    { kind: 'chain', chain: 'refusable' },
    ...families.map(proxied),
    rule('refusable', ...isProtocol(UDP), ...inState(states.new), verdict('goto', 'refuse')),
    rule(
      'refusable',
      ...isTcp(),
      ...flags(SYN_AND_ACK),
      ['cmp', FIRST, compare.equal, Uint8Array.of(SYN)],
      verdict('goto', 'refuse'),
    ),
    ...baseChain('input', 'filter', hooks.input, -10),
    rule('input', ...isFamily(4), ...isIn(range, layouts[4].destination), verdict('jump', 'refusable')),
  ];
}

/** Before translation (priority mangle): a reset that is made later goes to a client under the endpoint's address, and is not heeded. */
function cutting({ cut }: FilterMarks): readonly RuleOperation[] {
  return [
    { kind: 'chain', chain: 'cut' },
    // What we send ourselves carries the flow's entry.
    rule('cut', ...inState(states.related), verdict('accept')),
    rule('cut', ...isTcp(), ...flags(RST), ['cmp', FIRST, compare.equal, Uint8Array.of(RST)], verdict('accept')),
    rule('cut', ...markFlow(cut)),
    rule('cut', ...isTcp(), ['counter'], ['reject', 1, 0]),
    rule('cut', ['counter'], verdict('drop')),
    { kind: 'chain', chain: 'cut-check' },
    rule(
      'cut-check',
      ['ct-load', ct.mark, FIRST],
      masked(FIRST, cut),
      ['cmp', FIRST, compare.unequal, word(0)],
      verdict('goto', 'cut'),
    ),
    ...baseChain('cut-pre', 'filter', hooks.prerouting, -150, ['cut-check']),
    ...baseChain('cut-out', 'filter', hooks.output, -150, ['cut-check']),
  ];
}

function concatenated(...parts: readonly number[]): number {
  return parts.reduce((type, part) => type * 64 + part, 0);
}
