import { textOf } from '../../src/domain/dataplane/kernel-elements.js';
import type { RuleBatch, RuleExpression, RuleOperation, RulePlan } from '../../src/domain/dataplane/ruleset.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { FilterDump, FilterFacts, ForeignChain, PacketFilter } from '../../src/ports/dataplane/packet-filter.js';
import { type TracedPacket, type TraceResult, Tracer } from './packet-tracer.js';

type SetOperation = Extract<RuleOperation, { kind: 'set' }>;
type BaseChain = Extract<RuleOperation, { kind: 'chain'; type: string }>;

/** An element's key and data as text of bytes; of a verdict map the chain. */
export interface FakeSet {
  readonly facts: SetOperation;
  readonly elements: Map<string, string>;
}

/** The table of one machine, which outlives who has opened it. */
export interface FakeTable {
  readonly chains: Map<string, { readonly base?: BaseChain; readonly rules: (readonly RuleExpression[])[] }>;
  readonly sets: Map<string, FakeSet>;
}

function emptyTable(): FakeTable {
  return { chains: new Map(), sets: new Map() };
}

/** A packet filter that carries plans out as the kernel does, batch by batch, and says what would become of a packet. */
export class FakePacketFilter implements PacketFilter {
  foreign: readonly ForeignChain[] = [];
  /** Nobody else can change the table. */
  owned = true;
  /** Batches that were carried out, and which of them had everything before them give way. */
  readonly batches: { readonly batch: RuleBatch; readonly whole: boolean }[] = [];
  #table: FakeTable | undefined;
  #onForeign: (() => void) | undefined;
  #failure: unknown;

  /** The next batch is refused with `error`. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  /** As `nft flush ruleset` does to a table that is nobody's. */
  flush(): void {
    this.#table = undefined;
    this.#onForeign?.();
  }

  get table(): FakeTable {
    if (this.#table === undefined) throw new Error('there is no table');
    return this.#table;
  }

  /** What becomes of it, from the hook at which it enters the machine. */
  trace(packet: TracedPacket, random: () => number = Math.random): TraceResult {
    return new Tracer(this.table, random).run(packet);
  }

  async open(onForeign: () => void, { signal }: CallOptions): Promise<FilterFacts> {
    signal.throwIfAborted();
    this.#onForeign = onForeign;
    const adopted = this.#table !== undefined;
    this.#table ??= emptyTable();
    return { owned: this.owned, adopted };
  }

  async apply(plan: RulePlan, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    for (const batch of plan) this.#table = this.#carriedOut(copyOf(this.table), batch, false);
  }

  async replace(batch: RuleBatch, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    this.#table = this.#carriedOut(emptyTable(), batch, true);
  }

  async dump({ signal }: CallOptions): Promise<FilterDump> {
    signal.throwIfAborted();
    const { chains, sets } = this.#table ?? emptyTable();
    return {
      chains: [...chains.keys()],
      rules: new Map([...chains].flatMap(([chain, { rules }]) => (rules.length === 0 ? [] : [[chain, rules.length]]))),
      sets: [...sets].map(([set, { elements }]) => ({
        set,
        packed: Uint8Array.from([...elements].flatMap(([key, data]) => [...bytesOf(key), ...bytesOf(data)])),
      })),
    };
  }

  async foreignChains({ signal }: CallOptions): Promise<readonly ForeignChain[]> {
    signal.throwIfAborted();
    return this.foreign;
  }

  async close(): Promise<void> {
    this.#onForeign = undefined;
  }

  async remove({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    this.#table = undefined;
  }

  #carriedOut(table: FakeTable, batch: RuleBatch, whole: boolean): FakeTable {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    for (const [index, operation] of batch.entries()) {
      const problem = perform(table, operation);
      if (problem !== undefined) {
        throw new AgentError('dataplane.filter_failed', { problem: `operation ${index}, ${operation.kind}: ${problem}` });
      }
    }
    this.batches.push({ batch, whole });
    return table;
  }
}

/** What the kernel would refuse it for. */
function perform({ chains, sets }: FakeTable, operation: RuleOperation): string | undefined {
  switch (operation.kind) {
    case 'chain':
      chains.set(operation.chain, { ...('hook' in operation ? { base: operation } : {}), rules: [] });
      return undefined;
    case 'rule': {
      const chain = chains.get(operation.chain);
      if (chain === undefined) return `there is no chain ${operation.chain}`;
      chain.rules.push(operation.expressions);
      return undefined;
    }
    case 'set':
      sets.set(operation.set, { facts: operation, elements: new Map() });
      return undefined;
    case 'remove':
      return remove({ chains, sets }, operation);
    case 'counter':
      return undefined;
    case 'flush':
      if ('set' in operation) sets.get(operation.set)?.elements.clear();
      else chains.get(operation.chain)?.rules.splice(0);
      return undefined;
    default: {
      const set = sets.get(operation.set);
      return set === undefined ? `there is no set ${operation.set}` : change(set, chains, operation);
    }
  }
}

function remove({ chains, sets }: FakeTable, operation: Extract<RuleOperation, { kind: 'remove' }>): string | undefined {
  if ('handle' in operation) return 'rules have no handles here';
  const { chain, set } = operation;
  if (set !== undefined) return sets.delete(set) ? undefined : `there is no set ${set}`;
  if (chain === undefined) return 'a table goes by `remove` of the port';
  const used = [...sets.values()].some(({ facts, elements }) => facts.dataBytes === 0 && [...elements.values()].includes(chain));
  if (used) return `chain ${chain} is in use`;
  return chains.delete(chain) ? undefined : `there is no chain ${chain}`;
}

function change(
  { elements }: FakeSet,
  chains: FakeTable['chains'],
  operation: Extract<RuleOperation, { kind: 'add-elements' | 'delete-elements' }>,
): string | undefined {
  const { keyBytes, dataBytes = 0, packed, kind } = operation;
  const size = keyBytes + dataBytes;
  if (packed.length % size !== 0) return 'bytes are left over';
  for (let at = 0, index = 0; at < packed.length; at += size, index++) {
    const key = textOf(packed.subarray(at, at + keyBytes));
    if (kind === 'delete-elements') {
      if (!elements.delete(key)) return 'there is no such element';
      continue;
    }
    const chain = operation.chains?.[index];
    if (chain !== undefined && !chains.has(chain)) return `there is no chain ${chain}`;
    const data = chain ?? textOf(packed.subarray(at + keyBytes, at + size));
    if (elements.has(key) && elements.get(key) !== data) return 'the element is there with other data';
    elements.set(key, data);
  }
  return undefined;
}

function copyOf({ chains, sets }: FakeTable): FakeTable {
  return {
    chains: new Map(
      [...chains].map(([name, { base, rules }]) => [name, { ...(base === undefined ? {} : { base }), rules: [...rules] }]),
    ),
    sets: new Map([...sets].map(([name, { facts, elements }]) => [name, { facts, elements: new Map(elements) }])),
  };
}

export function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
