import { changesOf, checkCommit } from '../../src/adapters/store/control-commit.js';
import { StoreWatchers } from '../../src/adapters/store/store-watchers.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Condition, ControlStore, StoreChange, StoredValue, Write } from '../../src/ports/store/control-store.js';

/** A store in memory. */
export class FakeControlStore implements ControlStore {
  readonly #values = new Map<string, StoredValue>();
  readonly #watchers = new StoreWatchers();
  #version = 0n;
  #failure: Error | undefined;
  #unknown: 'written' | 'not written' | undefined;
  #unavailable = false;
  #commits = 0;
  #reads = 0;
  #watches = 0;

  /** The next call of whatever kind rejects with `error` and leaves no trace. */
  failNext(error: Error = new AgentError('store.unavailable', { problem: 'told to fail' })): void {
    this.#failure = error;
  }

  /** The next commit rejects with `store.outcome_unknown`, and was done or not; all watches end. */
  loseNextAnswer(outcome: 'written' | 'not written'): void {
    this.#unknown = outcome;
  }

  /** While true every call rejects with `store.unavailable`; watches end when it begins. */
  setUnavailable(unavailable: boolean): void {
    this.#unavailable = unavailable;
    if (unavailable) this.#watchers.end('told to be unavailable');
  }

  /** How many commits were done. */
  get commits(): number {
    return this.#commits;
  }

  /** How often something was got or listed. */
  get reads(): number {
    return this.#reads;
  }

  /** How many watches were begun. */
  get watches(): number {
    return this.#watches;
  }

  async get(key: string, { signal }: CallOptions): Promise<StoredValue | undefined> {
    this.#enter(signal);
    this.#reads += 1;
    return this.#values.get(key);
  }

  async list(prefix: string, { signal }: CallOptions): Promise<readonly StoredValue[]> {
    this.#enter(signal);
    this.#reads += 1;
    return this.#present(prefix);
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[], { signal }: CallOptions): Promise<bigint | undefined> {
    signal.throwIfAborted();
    checkCommit(conditions, writes);
    this.#enter(signal);
    const unknown = this.#unknown;
    this.#unknown = undefined;
    const holds = conditions.every(({ key, version }) => (this.#values.get(key)?.version ?? 0n) === version);
    if (holds && unknown !== 'not written') this.#write(writes);
    if (unknown === undefined) return holds ? this.#version : undefined;
    this.#watchers.end('told to lose an answer');
    throw new AgentError('store.outcome_unknown', { problem: 'told to lose the answer' });
  }

  async *watch(
    prefix: string,
    { signal, first = () => {} }: CallOptions & { readonly first?: () => void },
  ): AsyncGenerator<readonly StoreChange[], void, undefined> {
    if (signal.aborted) return;
    this.#enter(signal);
    this.#watches += 1;
    yield* this.#watchers.add(prefix, signal).read(this.#present(prefix), this.#version, first);
  }

  /** One line a key: `key = value @ version`. */
  dump(prefix = ''): string {
    return this.#present(prefix)
      .map(({ key, value, version }) => `${key} = ${value} @ ${version}`)
      .join('\n');
  }

  #write(writes: readonly Write[]): void {
    if (writes.length === 0) return;
    this.#version += 1n;
    this.#commits += 1;
    const changes = changesOf(writes, this.#version, (key) => this.#values.has(key));
    for (const { key, value } of writes) {
      if (value === null) this.#values.delete(key);
      else this.#values.set(key, { key, value, version: this.#version });
    }
    this.#watchers.changed(changes);
  }

  #present(prefix: string): readonly StoredValue[] {
    return [...this.#values.values()].filter(({ key }) => key.startsWith(prefix)).sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    if (this.#unavailable) throw new AgentError('store.unavailable', { problem: 'told to be unavailable' });
  }
}
