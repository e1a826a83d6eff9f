import { AgentError, errorCodes } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Condition, OwnedControlStore, StoreChange, StoredValue, Write } from '../../ports/store/control-store.js';
import type { EtcdClient, Listed } from '../etcd/etcd-client.js';
import { range } from '../etcd/etcd-messages.js';
import type { KeyValue } from '../generated/etcd/mvccpb/kv.js';
import { checkCommit } from './control-commit.js';
import { commitOn } from './etcd-control-commit.js';
import { EtcdStoreFeed } from './etcd-store-feed.js';
import { StoreWatchers } from './store-watchers.js';

/** A listing whose revision was compacted while it was paged begins again, so often. */
const LIST_ATTEMPTS = 10;

export interface EtcdControlStoreOptions {
  /** Closed by whoever made it, after the store. */
  readonly client: EtcdClient;
  /** What all keys begin with, as `/holdfast/CLUSTER/store/`. */
  readonly prefix: string;
  readonly clock: Clock;
}

/**
 * The store of control planes that share an etcd. A version is etcd's revision of the commit. All watches are fed by one of etcd's, which
 * goes on without a gap over the loss of a member and a compaction.
 */
export class EtcdControlStore implements OwnedControlStore {
  readonly #options: EtcdControlStoreOptions;
  readonly #watchers = new StoreWatchers();
  readonly #stop = new AbortController();
  #feed: EtcdStoreFeed | undefined;
  #running: Promise<void> | undefined;
  #opening: Promise<void> | undefined;
  #trouble: StatusProblem | undefined;

  constructor(options: EtcdControlStoreOptions) {
    this.#options = options;
  }

  async open({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#stop.signal.aborted) throw closed();
    this.#opening ??= this.#open({ signal });
    await this.#opening;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#opening?.catch(() => {});
    this.#watchers.end('the store is closed');
    await this.#running;
  }

  problems(): readonly StatusProblem[] {
    return this.#trouble === undefined ? [] : [this.#trouble];
  }

  async get(key: string, { signal }: CallOptions): Promise<StoredValue | undefined> {
    this.#enter(signal);
    const found = await this.#noting(this.#options.client.range(range(this.#name(key)), { signal }));
    const [kv] = found?.kvs ?? [];
    return kv === undefined ? undefined : this.#stored(kv);
  }

  async list(prefix: string, { signal }: CallOptions): Promise<readonly StoredValue[]> {
    this.#enter(signal);
    const { values } = await this.#noting(this.#list(prefix, { signal }));
    return values;
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[], { signal }: CallOptions): Promise<bigint | undefined> {
    this.#enter(signal);
    checkCommit(conditions, writes);
    const { client, clock } = this.#options;
    const parts = { client, clock, name: (key: string) => this.#name(key) };
    const version = await this.#noting(commitOn(parts, conditions, writes, { signal }));
    if (version !== undefined) this.#feed?.saw(version);
    return version;
  }

  async *watch(
    prefix: string,
    { signal, first = () => {} }: CallOptions & { readonly first?: () => void },
  ): AsyncGenerator<readonly StoreChange[], void, undefined> {
    if (signal.aborted) return;
    this.#enter(signal);
    // Before it is asked what is present: a commit in between is in one of the two.
    const watcher = this.#watchers.add(prefix, signal);
    try {
      const { values, listed } = await this.#noting(this.#list(prefix, { signal }));
      this.#feed?.shown(listed);
      yield* watcher.read(values, listed.revision, first);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watcher.close();
    }
  }

  async #open(options: CallOptions): Promise<void> {
    const { client, prefix, clock } = this.#options;
    const feed = new EtcdStoreFeed({ client, prefix, clock, watchers: this.#watchers, report: (problem) => this.#note(problem) });
    await feed.start(options);
    this.#feed = feed;
    this.#running = feed.run(this.#stop.signal);
  }

  async #list(
    prefix: string,
    options: CallOptions,
  ): Promise<{ readonly values: readonly StoredValue[]; readonly listed: Listed }> {
    for (let attempt = 0; attempt < LIST_ATTEMPTS; attempt += 1) {
      const listed = await this.#options.client.list(this.#name(prefix), options);
      if (listed === undefined) continue;
      return { values: listed.kvs.map((kv) => this.#stored(kv)), listed };
    }
    throw new AgentError('store.unavailable', { problem: 'etcd: compacted faster than a listing is read' });
  }

  #name(key: string): string {
    return this.#options.prefix + key;
  }

  #stored({ key, value, modRevision }: KeyValue): StoredValue {
    return { key: key.toString().slice(this.#options.prefix.length), value: value.toString(), version: modRevision };
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#feed === undefined || this.#stop.signal.aborted) throw closed();
  }

  async #noting<T>(work: Promise<T>): Promise<T> {
    try {
      const result = await work;
      this.#note(undefined);
      return result;
    } catch (error) {
      if (error instanceof AgentError && error.kind === 'unavailable') this.#note(error.message);
      throw error;
    }
  }

  #note(problem: string | undefined): void {
    const since = this.#trouble?.since ?? this.#options.clock.now();
    const { remedy } = errorCodes['store.unavailable'];
    this.#trouble = problem === undefined ? undefined : { subject: 'control-store', reason: problem, since, remedy };
  }
}

function closed(): AgentError {
  return new AgentError('store.unavailable', { problem: 'the store is not open' });
}
