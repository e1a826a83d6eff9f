import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import { changesOf } from './control-commit.js';
import type { Commit, CommitOutcome } from './sqlite-control-protocol.js';
import type { StoreWatchers } from './store-watchers.js';

/** A batch takes commits up to either; one alone is at most 1 MiB. */
const BATCH_BYTES = 4 * 1024 * 1024;
const BATCH_COMMITS = 1_000;

interface Waiting {
  readonly commit: Commit;
  readonly bytes: number;
  readonly signal: AbortSignal;
  readonly resolve: (version: bigint | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface Parts {
  readonly write: (commits: readonly Commit[]) => Promise<CommitOutcome>;
  readonly watchers: StoreWatchers;
  /** Of each batch that was not written; undefined after one that was. */
  readonly report: (problem: string | undefined) => void;
}

/** Commits in order of arrival. While one batch is being written, the next ones gather, and share one fsync. */
export class SqliteControlCommits {
  readonly #parts: Parts;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** As `ControlStore.commit`, of what has been checked. */
  commit(commit: Commit, { signal }: CallOptions): Promise<bigint | undefined> {
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          signal.removeEventListener('abort', onAbort);
          settle(value);
        };
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const bytes = commit.writes.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0);
      this.#queue.push({ commit, bytes, signal, resolve: settled(resolve), reject: settled(reject) });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when everything that waited is answered. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Whoever commits in the same turn of the event loop shares the first batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) await this.#writeBatch(this.#take());
    this.#running = undefined;
  }

  #take(): readonly Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const waiting of this.#queue) {
      bytes += waiting.bytes;
      if (count > 0 && (bytes > BATCH_BYTES || count >= BATCH_COMMITS)) break;
      count += 1;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch.filter(({ signal }) => !signal.aborted);
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 0) return;
    const outcome = await this.#write(batch);
    if (outcome.outcome === 'committed') this.#answer(batch, outcome);
    else this.#fail(batch, outcome);
  }

  async #write(batch: readonly Waiting[]): Promise<CommitOutcome> {
    try {
      return await this.#parts.write(batch.map(({ commit }) => commit));
    } catch (error) {
      return { outcome: 'in_doubt', problem: error instanceof Error ? error.message : String(error) };
    }
  }

  #answer(batch: readonly Waiting[], { answers }: Extract<CommitOutcome, { outcome: 'committed' }>): void {
    this.#parts.report(undefined);
    for (const [index, { commit, resolve }] of batch.entries()) {
      const { version, removed = [] } = answers[index] ?? {};
      if (version !== undefined) this.#parts.watchers.changed(changesOf(commit.writes, version, (key) => removed.includes(key)));
      resolve(version);
    }
  }

  #fail(batch: readonly Waiting[], { outcome, problem }: Exclude<CommitOutcome, { outcome: 'committed' }>): void {
    this.#parts.report(problem);
    // Whether it was written shows only when the file is read again: so do whoever watches.
    if (outcome === 'in_doubt') this.#parts.watchers.end(problem);
    const code = outcome === 'in_doubt' ? 'store.outcome_unknown' : 'store.unavailable';
    for (const { reject } of batch) reject(new AgentError(code, { problem }));
  }
}
