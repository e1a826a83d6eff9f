import { markerChain, planAdoption } from '../../domain/dataplane/kernel-adoption.js';
import { KernelCompiler } from '../../domain/dataplane/kernel-compiler.js';
import { Elements, familyOf, serviceKey } from '../../domain/dataplane/kernel-elements.js';
import type { FilterSettings } from '../../domain/dataplane/kernel-model.js';
import { baseRuleset } from '../../domain/dataplane/kernel-ruleset.js';
import type { L4Delta, L4Listener, L4Table, ListenerId } from '../../domain/dataplane/model.js';
import type { RuleBatch, RulePlan } from '../../domain/dataplane/ruleset.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { FilterFacts, PacketFilter } from '../../ports/dataplane/packet-filter.js';

/** What a change of the table is: what the kernel carries, and what the proxy answers for, by id. */
export interface TableChange {
  readonly kernel: L4Delta;
  readonly proxied: readonly L4Listener[];
  readonly unproxied: readonly L4Listener[];
}

/** Our table in the kernel: it is taken up as it was left, and changed by what differs. */
export class KernelTable {
  readonly #filter: PacketFilter;
  readonly #settings: FilterSettings;
  #compiler: KernelCompiler;
  #facts: FilterFacts | undefined;
  /** Whether the kernel is known to have what the compiler says. */
  #known = false;

  constructor(filter: PacketFilter, settings: FilterSettings) {
    this.#filter = filter;
    this.#settings = settings;
    this.#compiler = new KernelCompiler(settings);
  }

  get facts(): FilterFacts | undefined {
    return this.#facts;
  }

  get known(): boolean {
    return this.#known;
  }

  get compiler(): KernelCompiler {
    return this.#compiler;
  }

  /** Somebody has changed it, or a batch of it is not known to have been carried out. */
  doubt(): void {
    this.#known = false;
  }

  /** Looks at what there is, and makes it `kernel` and `proxied` by what differs; all of it is made where there is another table, or none. */
  async take(
    kernel: L4Table,
    proxied: Iterable<L4Listener>,
    onForeign: () => void,
    options: CallOptions,
  ): Promise<'same' | 'mended' | 'made'> {
    const facts = this.#facts ?? (await this.#filter.open(onForeign, options));
    const isFirst = this.#facts === undefined;
    this.#facts = facts;
    // Before the dump: a change meanwhile is seen by the next run.
    this.#known = true;
    try {
      const compiler = new KernelCompiler(this.#settings);
      const base = markerChain(baseRuleset(this.#settings));
      const plan: RulePlan = [[base], ...compiler.load(kernel), proxiedBatch('add-elements', proxied)];
      const mending = isFirst && !facts.adopted ? undefined : planAdoption(await this.#filter.dump(options), plan);
      if (mending === undefined) await this.#filter.replace(plan.flat(), options);
      else if (mending.length > 0) await this.#filter.apply(mending, options);
      this.#compiler = compiler;
      if (mending === undefined) return 'made';
      return mending.length > 0 ? 'mended' : 'same';
    } catch (error) {
      this.#known = false;
      throw error;
    }
  }

  /** The proxy's ports are let through before the kernel lets them go, and refused after it has taken them. */
  async change({ kernel, proxied, unproxied }: TableChange, options: CallOptions): Promise<void> {
    const plan = [
      proxiedBatch('add-elements', proxied),
      ...this.#compiler.update(kernel),
      proxiedBatch('delete-elements', unproxied),
    ].filter((batch) => batch.length > 0);
    if (plan.length === 0) return;
    try {
      await this.#filter.apply(plan, options);
    } catch (error) {
      this.#known = false;
      throw error;
    }
  }

  /** Listeners of which the shares are further off than `tolerance`. */
  rounded(tolerance: number): readonly ListenerId[] {
    return this.#compiler.rounded(tolerance);
  }
}

function proxiedBatch(kind: 'add-elements' | 'delete-elements', listeners: Iterable<L4Listener>): RuleBatch {
  const elements = new Elements();
  for (const { address, port, protocol } of listeners) {
    elements.push('proxied', familyOf(address), serviceKey(address, protocol, port));
  }
  return elements.operations(kind);
}
