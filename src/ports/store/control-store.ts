import type { CallOptions } from '../call-options.js';
import type { ProblemSource } from '../node/problem-source.js';

/** One key of the control plane's own state: everything that is not a resource (tokens, certificates, instructions, epochs …). */
export interface StoredValue {
  readonly key: string;
  readonly value: string;
  /** Grows with every write of any key and is never used twice. */
  readonly version: bigint;
}

/** Holds when the key was last written at `version`; 0 means that it is absent. */
export interface Condition {
  readonly key: string;
  readonly version: bigint;
}

export interface Write {
  readonly key: string;
  /** `null` removes the key. */
  readonly value: string | null;
}

export interface StoreChange {
  readonly key: string;
  /** Undefined: the key was removed. */
  readonly value: string | undefined;
  readonly version: bigint;
}

/** At most so many conditions and writes together: etcd's default limit is 128 operations. */
export const MAX_OPERATIONS = 100;
/** Of one commit, keys and values: etcd refuses 1.5 MiB. */
export const MAX_COMMIT_BYTES = 1024 * 1024;

/**
 * Keys and values with compare-and-set, the same on the embedded store and on etcd. Keys are segments of printable ASCII separated by
 * `/`; values are well-formed text. Reads see every commit that had resolved when they were called.
 */
export interface ControlStore {
  /** @throws AgentError `store.unavailable` */
  get(key: string, options: CallOptions): Promise<StoredValue | undefined>;

  /** All keys that begin with `prefix`, sorted, as of one moment. @throws AgentError `store.unavailable` */
  list(prefix: string, options: CallOptions): Promise<readonly StoredValue[]>;

  /**
   * All writes in one step if every condition holds, else nothing. Durable when it resolves with a version, which every written key then
   * has; `undefined`: a condition did not hold. On abort it was done or not.
   * @throws AgentError `store.unavailable` (certainly not written), `store.outcome_unknown`, `store.too_large`
   */
  commit(conditions: readonly Condition[], writes: readonly Write[], options: CallOptions): Promise<bigint | undefined>;

  /**
   * What is there, then every change, in order of versions and without a gap, whole commits at a time. `first` is called once, when
   * everything that was there has been given. Ends without an error on abort.
   * @throws AgentError `store.unavailable`; whoever watches begins again
   */
  watch(prefix: string, options: CallOptions & { readonly first?: () => void }): AsyncIterable<readonly StoreChange[]>;
}

/** A store that this process keeps itself. Its problems are those of the newest commit; one that succeeds ends them. */
export interface OwnedControlStore extends ControlStore, ProblemSource {
  /**
   * Ready for calls when it resolves.
   * @throws AgentError `store.corrupt`, `store.newer_schema`, `store.unavailable`, `agent.data_dir_locked`
   */
  open(options: CallOptions): Promise<void>;
  /** Commits in flight are finished, watches end with `store.unavailable`. Safe before `open` and twice. */
  close(): Promise<void>;
}

/** As much as can be asked of a store that is about to be replaced. It may be damaged: then it throws AgentError `store.*`. */
export type FormerStore = Pick<ControlStore, 'list'>;
