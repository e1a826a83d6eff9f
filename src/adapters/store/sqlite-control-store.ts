import { dirname } from 'node:path';
import { AgentError, errorCodes } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Condition, OwnedControlStore, StoreChange, StoredValue, Write } from '../../ports/store/control-store.js';
import { ensureFolder } from '../files/durable-file.js';
import { startWorker } from '../threads/typescript-worker.js';
import { WorkerCalls } from '../threads/worker-calls.js';
import { checkCommit } from './control-commit.js';
import { SqliteControlCommits } from './sqlite-control-commits.js';
import type { CommitOutcome, ControlCall, Listing } from './sqlite-control-protocol.js';
import { StoreWatchers } from './store-watchers.js';

export interface SqliteControlStoreOptions {
  /** The database, `control.db`; its WAL stands beside it. Its folder is made (0700) when it is missing. */
  readonly file: string;
  readonly clock: Clock;
}

/** The store of a single control plane, durable in SQLite, whose every wait is in a worker thread. Values are kept in the file alone. */
export class SqliteControlStore implements OwnedControlStore {
  readonly #options: SqliteControlStoreOptions;
  readonly #thread: WorkerCalls<ControlCall>;
  readonly #watchers = new StoreWatchers();
  readonly #commits: SqliteControlCommits;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #trouble: StatusProblem | undefined;

  constructor(options: SqliteControlStoreOptions) {
    this.#options = options;
    this.#thread = new WorkerCalls({
      start: () => startWorker('./sqlite-control-worker', import.meta.url, options.file),
      lost,
    });
    this.#commits = new SqliteControlCommits({
      write: (commits) => this.#thread.ask<CommitOutcome>({ call: 'commit', commits }),
      watchers: this.#watchers,
      report: (problem) => this.#note(problem),
    });
  }

  /** Makes the file where there is none, and checks all of it. */
  async open({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#closing !== undefined) throw closed();
    this.#opening ??= this.#open();
    await this.#opening;
    if (!signal.aborted) return;
    await this.close();
    signal.throwIfAborted();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  problems(): readonly StatusProblem[] {
    return this.#trouble === undefined ? [] : [this.#trouble];
  }

  async get(key: string, { signal }: CallOptions): Promise<StoredValue | undefined> {
    this.#enter(signal);
    return abortable(this.#thread.ask<StoredValue | undefined>({ call: 'get', key }), signal);
  }

  async list(prefix: string, { signal }: CallOptions): Promise<readonly StoredValue[]> {
    this.#enter(signal);
    const { values } = await abortable(this.#thread.ask<Listing>({ call: 'list', prefix }), signal);
    return values;
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[], options: CallOptions): Promise<bigint | undefined> {
    this.#enter(options.signal);
    checkCommit(conditions, writes);
    return this.#commits.commit({ conditions, writes }, options);
  }

  /** A copy as of one moment, in a new file (0600), checked. @throws AgentError `store.unavailable`, `store.corrupt` */
  async copyTo(file: string): Promise<void> {
    if (this.#opening === undefined || this.#closing !== undefined) throw closed();
    await this.#thread.ask<void>({ call: 'copyTo', file });
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
      const { values, version } = await abortable(this.#thread.ask<Listing>({ call: 'list', prefix }), signal);
      yield* watcher.read(values, version, first);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      watcher.close();
    }
  }

  #enter(signal: AbortSignal): void {
    signal.throwIfAborted();
    if (this.#opening === undefined || this.#closing !== undefined) throw closed();
  }

  async #open(): Promise<void> {
    const { file } = this.#options;
    try {
      await ensureFolder(dirname(file));
    } catch (error) {
      throw new AgentError('store.unavailable', { file, problem: `${file}: ${String(error)}` }, { cause: error });
    }
    try {
      await this.#thread.ask<void>({ call: 'open' });
    } catch (error) {
      await this.#thread.close({ call: 'close' });
      throw error;
    }
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => {});
    await this.#commits.idle();
    this.#watchers.end('the store is closed');
    await this.#thread.close({ call: 'close' });
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

/** Whoever has given up does not wait for the disk. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Whether a commit was written is not known then, which the fact says. */
function lost(cause: unknown): AgentError {
  return new AgentError('store.unavailable', { lost: 'true', problem: 'the thread of the store has ended' }, { cause });
}
