import type { Condition, StoredValue, Write } from '../../ports/store/control-store.js';

/** One call of `ControlStore.commit`, checked. */
export interface Commit {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
}

export interface CommitAnswer {
  /** Undefined: a condition did not hold. */
  readonly version: bigint | undefined;
  /** Keys that were there and are no more. */
  readonly removed: readonly string[];
}

export type CommitOutcome =
  /** Durable; an answer for each. */
  | { readonly outcome: 'committed'; readonly answers: readonly CommitAnswer[] }
  /** Certainly not in the file, now or later. */
  | { readonly outcome: 'not_written'; readonly problem: string }
  /** It cannot be learnt from the file. */
  | { readonly outcome: 'in_doubt'; readonly problem: string };

export interface Listing {
  readonly values: readonly StoredValue[];
  /** Of the newest commit that is in it. */
  readonly version: bigint;
}

/** What each call is answered with: `SqliteControlFile` says. */
export type ControlCall =
  | { readonly call: 'open' }
  | { readonly call: 'commit'; readonly commits: readonly Commit[] }
  | { readonly call: 'get'; readonly key: string }
  | { readonly call: 'list'; readonly prefix: string }
  | { readonly call: 'copyTo'; readonly file: string }
  | { readonly call: 'close' };
