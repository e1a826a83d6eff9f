import { joined, textOf } from './kernel-elements.js';
import type { RuleBatch, RuleOperation, RulePlan } from './ruleset.js';

/** What the kernel has of our table, as it was left. */
export interface TableAsLeft {
  readonly chains: readonly string[];
  readonly rules: ReadonlyMap<string, number>;
  readonly sets: readonly { readonly set: string; readonly packed: Uint8Array }[];
}

type SetOperation = Extract<RuleOperation, { readonly kind: 'set' }>;

/** NFT_SET_EVAL of linux/netfilter/nf_tables.h: packets write its elements. */
const DYNAMIC = 0x20;
/** Data that are verdicts; chains name them. */
const VERDICT_DATA = 0xffff_ff00;

/**
 * A chain without rules, whose name tells all that services do not change: a table that an earlier version of this program, or one with other
 * settings, has left is known by it.
 */
export function markerChain(base: RuleBatch): RuleOperation {
  const text = JSON.stringify(base, (_, value: unknown) => (value instanceof Uint8Array ? [...value] : value));
  return { kind: 'chain', chain: `ruleset-${fingerprint(text)}` };
}

/** FNV-1a twice, with two offsets; nobody forges it who could not write to the table. */
function fingerprint(text: string): string {
  let [one, other] = [0x811c_9dc5, 0x050c_5d1f];
  for (let at = 0; at < text.length; at++) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x0100_0193);
    other = Math.imul(other ^ text.charCodeAt(at), 0x0100_0193);
  }
  return [one, other].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('');
}

/**
 * What makes the table as `wanted`, a plan for an empty one, would: nothing when it is so. Undefined: it has other chains, rules or sets, and
 * gives way as a whole.
 */
export function planAdoption(left: TableAsLeft, wanted: RulePlan): RulePlan | undefined {
  const operations = wanted.flat();
  if (!sameRules(left, operations)) return undefined;
  const sets = operations.filter((operation) => operation.kind === 'set');
  const present = new Map(left.sets.map(({ set, packed }) => [set, packed]));
  if (sets.length !== present.size || sets.some(({ set }) => !present.has(set))) return undefined;
  const comparable = sets.filter(({ dataType, flags = 0 }) => dataType !== VERDICT_DATA && (flags & DYNAMIC) === 0);
  const elements = elementsOf(operations);
  const changes = comparable.map((set) =>
    difference(set, present.get(set.set) ?? new Uint8Array(), elements.get(set.set) ?? new Map()),
  );
  // Slots that a packet may still be sent to go when their class is gone.
  const first = changes.flatMap(({ replaced, added }) => [...replaced, ...added]);
  const second = changes.flatMap(({ surplus }) => surplus);
  const [services, rest] = [
    second.filter(({ set }) => set.startsWith('service')),
    second.filter(({ set }) => !set.startsWith('service')),
  ];
  return [[...services, ...first], rest].filter((batch) => batch.length > 0);
}

function sameRules({ chains, rules }: TableAsLeft, operations: RuleBatch): boolean {
  const names = operations.flatMap((operation) => (operation.kind === 'chain' ? [operation.chain] : []));
  const counts = new Map<string, number>();
  for (const operation of operations) {
    if (operation.kind === 'rule') counts.set(operation.chain, (counts.get(operation.chain) ?? 0) + 1);
  }
  const known = new Set(chains);
  return (
    chains.length === names.length &&
    names.every((name) => known.has(name)) &&
    [...counts].every(([chain, count]) => rules.get(chain) === count) &&
    [...rules.keys()].every((chain) => counts.has(chain))
  );
}

type ElementMap = Map<string, { readonly key: Uint8Array; readonly data: Uint8Array }>;

function elementsOf(operations: RuleBatch): ReadonlyMap<string, ElementMap> {
  const all = new Map<string, ElementMap>();
  for (const operation of operations) {
    if (operation.kind !== 'add-elements') continue;
    const elements = all.get(operation.set) ?? new Map();
    all.set(operation.set, elements);
    readInto(elements, operation.packed, operation.keyBytes, operation.dataBytes ?? 0);
  }
  return all;
}

function readInto(elements: ElementMap, packed: Uint8Array, keyBytes: number, dataBytes: number): void {
  for (let at = 0; at + keyBytes + dataBytes <= packed.length; at += keyBytes + dataBytes) {
    const key = packed.subarray(at, at + keyBytes);
    elements.set(textOf(key), { key, data: packed.subarray(at + keyBytes, at + keyBytes + dataBytes) });
  }
}

type ElementOperation = Extract<RuleOperation, { readonly kind: 'add-elements' | 'delete-elements' }>;

function difference({ set, fields, dataBytes = 0 }: SetOperation, packed: Uint8Array, wanted: ElementMap) {
  const keyBytes = fields.reduce((sum, length) => sum + 4 * Math.ceil(length / 4), 0);
  const present: ElementMap = new Map();
  readInto(present, packed, keyBytes, dataBytes);
  const added: Uint8Array[] = [];
  const replaced: Uint8Array[] = [];
  for (const [text, { key, data }] of wanted) {
    const former = present.get(text);
    if (former !== undefined && textOf(former.data) === textOf(data)) continue;
    if (former !== undefined) replaced.push(key);
    added.push(key, data);
  }
  const surplus = [...present].flatMap(([text, { key }]) => (wanted.has(text) ? [] : [key]));
  const operation = (kind: ElementOperation['kind'], parts: readonly Uint8Array[]): readonly ElementOperation[] => {
    if (parts.length === 0) return [];
    const data = kind === 'add-elements' && dataBytes > 0 ? { dataBytes } : {};
    return [{ kind, set, keyBytes, ...data, packed: joined(parts) }];
  };
  return {
    replaced: operation('delete-elements', replaced),
    added: operation('add-elements', added),
    surplus: operation('delete-elements', surplus),
  };
}
