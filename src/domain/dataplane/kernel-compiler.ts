import type { IpAddress } from '../kernel/network.js';
import { addressOf, Elements, endpointKey, endpointValue, familyOf, joined, serviceKey, textOf } from './kernel-elements.js';
import { word } from './kernel-expressions.js';
import { classOf, type Family, type FilterSettings, setName } from './kernel-model.js';
import { affinityChain, affinityClass, baseRuleset } from './kernel-ruleset.js';
import { type Deal, dealByRendezvous, dealByWeight } from './kernel-slots.js';
import type { L4Delta, L4Endpoint, L4Listener, L4Table, ListenerId } from './model.js';
import type { RuleBatch, RuleOperation, RulePlan } from './ruleset.js';

/** Of one batch, about 20,000 elements: 2 MiB of netlink. */
const LISTENERS_A_BATCH = 5_000;
/** The shortest time that a client can be remembered. */
const LEAST_AFFINITY_S = 1;

/** A listener as the kernel has it; without any endpoint it has nothing, and is refused. */
interface Entry {
  readonly family: Family;
  readonly key: Uint8Array;
  readonly classId: number;
  /** Of clients that keep their slot, seconds. */
  readonly affinity: number | undefined;
  readonly slots: readonly L4Endpoint[];
  readonly error: number;
  /** Endpoints of this node. */
  readonly local: readonly IpAddress[];
}

/** What a listener's way through the kernel is, for `explain` and `status`. */
export interface KernelRoute {
  readonly slots: readonly L4Endpoint[];
  /** How far the worst share is off, as a part of it. */
  readonly error: number;
}

/** The whole table: what `KernelCompiler` comes to, made at once. */
export function compileRuleset(settings: FilterSettings, table: L4Table): RulePlan {
  return new KernelCompiler(settings).load(table);
}

/**
 * Keeps the kernel's table at the cost of what changed. A plan counts as carried out: one that was not has to be followed by a `load` of a new
 * compiler. Traffic finds an endpoint between any two batches: where a service gets fewer slots, it gets its class first (a packet may have
 * read the former one), and loses the slots in a later batch.
 */
export class KernelCompiler {
  readonly #settings: FilterSettings;
  readonly #entries = new Map<ListenerId, Entry>();
  /** How many listeners have it: `FAMILY SECONDS` of remembered clients, and addresses of this node. */
  readonly #affinities = new Map<string, number>();
  readonly #locals = new Map<IpAddress, number>();

  constructor(settings: FilterSettings) {
    this.#settings = settings;
  }

  /** For an empty table. The first batch has what is there without any service. */
  load(table: L4Table): RulePlan {
    return [baseRuleset(this.#settings), ...this.update({ upsert: [...table.values()], remove: [] })];
  }

  update({ upsert, remove }: L4Delta): RulePlan {
    const changes = this.#changes([
      ...remove.map((id) => ({ id, next: undefined })),
      ...upsert.map((each) => ({ id: each.id, next: entryOf(each) })),
    ]);
    const plan: RuleBatch[] = [];
    for (let from = 0; from < changes.length; from += LISTENERS_A_BATCH) {
      const step = new Step(this.#settings, this.#affinities, this.#locals);
      plan.push(...step.batches(changes.slice(from, from + LISTENERS_A_BATCH)));
    }
    return plan;
  }

  /** By key: one listener may have given its address and port to another. */
  #changes(wanted: readonly { readonly id: ListenerId; readonly next: Entry | undefined }[]): readonly Change[] {
    const changes = new Map<string, { former?: Entry; next?: Entry }>();
    const at = (entry: Entry) => {
      const key = textOf(entry.key);
      const known = changes.get(key) ?? {};
      changes.set(key, known);
      return known;
    };
    for (const { id, next } of wanted) {
      const former = this.#entries.get(id);
      if (former !== undefined) at(former).former = former;
      if (next === undefined) this.#entries.delete(id);
      else this.#entries.set(id, next);
      if (next !== undefined) at(next).next = next;
    }
    return [...changes.values()];
  }

  route(id: ListenerId): KernelRoute | undefined {
    return this.#entries.get(id);
  }

  /** Listeners whose shares are off by more than `tolerance`. */
  rounded(tolerance: number): readonly ListenerId[] {
    return [...this.#entries].filter(([, { error }]) => error > tolerance).map(([id]) => id);
  }

  get size(): { readonly services: number; readonly slots: number } {
    let slots = 0;
    for (const entry of this.#entries.values()) slots += entry.slots.length;
    return { services: this.#entries.size, slots };
  }
}

/** Of one address and port. */
interface Change {
  readonly former?: Entry;
  readonly next?: Entry;
}

/** What some listeners' changes come to: a batch, and another one for what is to go only then. */
class Step {
  readonly #settings: FilterSettings;
  readonly #affinities: Map<string, number>;
  readonly #locals: Map<IpAddress, number>;
  readonly #before: RuleOperation[] = [];
  readonly #deleted = new Elements();
  readonly #added = new Elements();
  readonly #surplus = new Elements();
  readonly #after: RuleOperation[] = [];

  constructor(settings: FilterSettings, affinities: Map<string, number>, locals: Map<IpAddress, number>) {
    this.#settings = settings;
    this.#affinities = affinities;
    this.#locals = locals;
  }

  /** What comes is counted before what goes: what both have stays. */
  batches(changes: readonly Change[]): readonly RuleBatch[] {
    for (const { next } of changes) this.#count(next, 1);
    for (const { former } of changes) this.#count(former, -1);
    for (const { former, next } of changes) {
      if (next !== undefined) this.#put(former, next);
      else if (former !== undefined) this.#withdraw(former);
    }
    const first = [...this.#before, ...this.#deleted.operations('delete-elements'), ...this.#added.operations('add-elements')];
    const second = [...this.#surplus.operations('delete-elements'), ...this.#after];
    return [first, second].filter((batch) => batch.length > 0);
  }

  #count(entry: Entry | undefined, change: 1 | -1): void {
    this.#countAffinity(entry, change);
    for (const address of entry?.local ?? []) this.#countLocal(address, change);
  }

  /** At first it is refused, then its slots go. */
  #withdraw({ family, key, slots }: Entry): void {
    this.#deleted.push('service', family, key);
    for (let slot = 0; slot < slots.length; slot++) this.#surplus.push('endpoint', family, endpointKey(key, slot));
  }

  #put(former: Entry | undefined, { classId, family, key, slots }: Entry): void {
    for (const [slot, endpoint] of slots.entries()) {
      const old = former?.slots[slot];
      if (old !== undefined && sameTarget(old, endpoint)) continue;
      if (old !== undefined) this.#deleted.push('endpoint', family, endpointKey(key, slot));
      this.#added.push('endpoint', family, endpointKey(key, slot), endpointValue(endpoint.address, endpoint.port));
    }
    for (let slot = slots.length; slot < (former?.slots.length ?? 0); slot++) {
      this.#surplus.push('endpoint', family, endpointKey(key, slot));
    }
    if (former?.classId === classId) return;
    if (former !== undefined) this.#deleted.push('service', family, key);
    this.#added.push('service', family, key, word(classId));
  }

  #countAffinity(entry: Entry | undefined, change: 1 | -1): void {
    if (entry?.affinity === undefined) return;
    const { affinity, family } = entry;
    const count = counted(this.#affinities, `${family} ${affinity}`, change);
    if (change === 1 && count === 1) this.#before.push(...affinityClass(family, affinity, this.#settings.marks));
    if (change === -1 && count === 0) {
      this.#after.push(
        { kind: 'delete-elements', set: setName('class', family), keyBytes: 4, packed: word(classOf.affinity(affinity)) },
        { kind: 'remove', chain: affinityChain(family, affinity) },
      );
    }
  }

  #countLocal(address: IpAddress, change: 1 | -1): void {
    const count = counted(this.#locals, address, change);
    if (count !== (change === 1 ? 1 : 0)) return;
    const bytes = addressOf(address);
    const elements = change === 1 ? this.#added : this.#surplus;
    elements.push('local', familyOf(address), bytes);
    elements.push('hairpin', familyOf(address), joined([bytes, bytes]));
  }
}

/** Undefined for one that the kernel does not carry, and for one that nobody can be given to: both have no element. */
function entryOf(listener: L4Listener): Entry | undefined {
  const { address, affinityMs, endpoints, path, port, protocol, refuse } = listener;
  const first = endpoints.filter(({ tier }) => tier === 0);
  const used = first.length > 0 ? first : endpoints;
  if (path !== 'kernel' || refuse || used.length === 0) return undefined;
  const affinity =
    affinityMs === 0 || listener.algorithm === 'source-hash'
      ? undefined
      : Math.max(LEAST_AFFINITY_S, Math.ceil(affinityMs / 1_000));
  const { slots, error }: Deal = keepsSlots(listener) ? dealByRendezvous(used) : dealByWeight(used);
  return {
    family: familyOf(address),
    key: serviceKey(address, protocol, port),
    classId: classIdOf(listener, affinity, slots.length),
    affinity,
    slots,
    error,
    local: [...new Set(used.flatMap((each) => (each.local ? [each.address] : [])))],
  };
}

function classIdOf({ algorithm }: L4Listener, affinity: number | undefined, modulus: number): number {
  if (algorithm === 'source-hash') return classOf.hash();
  return affinity === undefined ? classOf.random(modulus) : classOf.affinity(affinity);
}

function keepsSlots({ affinityMs, algorithm }: L4Listener): boolean {
  return affinityMs !== 0 || algorithm === 'source-hash';
}

function counted<K>(counts: Map<K, number>, key: K, change: 1 | -1): number {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
  return count;
}

function sameTarget(a: L4Endpoint, b: L4Endpoint): boolean {
  return a.address === b.address && a.port === b.port;
}
