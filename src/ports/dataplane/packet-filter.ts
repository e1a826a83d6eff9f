import type { RuleBatch, RulePlan } from '../../domain/dataplane/ruleset.js';
import type { CallOptions } from '../call-options.js';

/** A base chain of somebody else, as far as it can be in the way. */
export interface ForeignChain {
  /** `inet filter`: family and table. */
  readonly table: string;
  readonly chain: string;
  /** `input`, `forward`, `output` … */
  readonly hook: string;
  readonly priority: number;
  /** What becomes of packets that no rule of it decides. */
  readonly policy: 'accept' | 'drop';
}

/** The elements of one of our sets; keys alone, or keys and data in turn. */
export interface FilterSet {
  readonly set: string;
  readonly packed: Uint8Array;
}

/** What the kernel has of our table. */
export interface FilterDump {
  readonly chains: readonly string[];
  /** How many rules each of them has that has any. */
  readonly rules: ReadonlyMap<string, number>;
  readonly sets: readonly FilterSet[];
}

export interface FilterFacts {
  /** Nobody else can change the table, and it outlives this process (Linux 6.9 and later). */
  readonly owned: boolean;
  /** It was there before, of a process that has ended. */
  readonly adopted: boolean;
}

/**
 * The packet filter of the machine: our one table of nf_tables. Every call throws AgentError `dataplane.filter_failed`, which names the object that it is about, and
 * `dataplane.filter_denied` without CAP_NET_ADMIN.
 */
export interface PacketFilter {
  /**
   * Makes the table ours, empty or as a process before left it. `onForeign` is called when somebody else has changed it, or may have; one that is owned
   * cannot be.
   */
  open(onForeign: () => void, options: CallOptions): Promise<FilterFacts>;
  /** Each batch at once, or not at all; those before one that fails are done. */
  apply(plan: RulePlan, options: CallOptions): Promise<void>;
  /** Everything that is in the table gives way to `batch`, at once. */
  replace(batch: RuleBatch, options: CallOptions): Promise<void>;
  dump(options: CallOptions): Promise<FilterDump>;
  /** Base chains of all other tables. */
  foreignChains(options: CallOptions): Promise<readonly ForeignChain[]>;
  /** The table stays as it is, for the next process. */
  close(): Promise<void>;
  /** The table goes. */
  remove(options: CallOptions): Promise<void>;
}
