import { AgentError } from '../../domain/kernel/errors.js';
import type { EntryRecord } from '../../domain/log/entry.js';
import { type Revision, revision } from '../../domain/log/model.js';
import { LogState } from '../../domain/log/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { checkSeen, type EtcdLogMemory } from './etcd-log-memory.js';
import type { Applied } from './etcd-log-records.js';
import type { EtcdLogStore, LoadedLog, Tail } from './etcd-log-store.js';
import { LogWatchers } from './log-watchers.js';

/** How often a replica asks for the head, whatever its watch says (engine.md E9). */
export const POLL_MS = 5_000;
/** After a watch that failed. */
const RETRY_MS = 200;

interface FollowerParts {
  readonly store: EtcdLogStore;
  readonly client: EtcdClient;
  readonly clock: Clock;
  /** The newest that this machine has seen. */
  readonly memory: EtcdLogMemory;
  /** Of what fails in the background, and of each success (undefined). */
  readonly report: (problem: AgentError | undefined) => void;
}

/** One replica's view of the log, kept up by a watch on the head and a read each 5 s. */
export class EtcdLogFollower {
  readonly #parts: FollowerParts;
  readonly #closed = new AbortController();
  readonly #stages: Map<string, Revision>;
  #state: LogState;
  #watchers: LogWatchers;
  #head: Revision;
  #version: bigint;
  #applied: Applied;
  #currentAt: number;
  #running: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #broken: AgentError | undefined;

  private constructor(parts: FollowerParts, loaded: LoadedLog) {
    this.#parts = parts;
    this.#currentAt = parts.clock.monotonic();
    this.#state = new LogState(loaded.state, this.#currentAt);
    this.#watchers = this.#watchersOf(this.#state);
    this.#head = loaded.head.last.revision;
    this.#version = loaded.version;
    this.#applied = loaded.applied;
    this.#stages = new Map(loaded.stages);
  }

  /** @throws AgentError `store.unavailable`, `log.rolled_back`, `log.corrupt`, `log.newer_schema` */
  static async open(parts: FollowerParts, options: CallOptions): Promise<EtcdLogFollower> {
    const loaded = await parts.store.load(options);
    checkSeen(parts.memory.read(), loaded.head, await parts.store.former(options));
    parts.memory.write(loaded.head.logId, loaded.head.last);
    return new EtcdLogFollower(parts, loaded);
  }

  /** Changes only when the replica had to begin again, which ends its watchers. */
  get state(): LogState {
    return this.#state;
  }

  get watchers(): LogWatchers {
    return this.#watchers;
  }

  /** etcd's revision of the head key when `state` was the head. */
  get version(): bigint {
    return this.#version;
  }

  get applied(): Applied {
    return this.#applied;
  }

  /** Stages that retained entries need. */
  get stages(): ReadonlyMap<string, Revision> {
    return this.#stages;
  }

  /** How long ago the view was certainly the newest, milliseconds. */
  get ageMs(): number {
    return this.#parts.clock.monotonic() - this.#currentAt;
  }

  /**
   * The view holds everything that was committed when this was called. Callers share reads, but never one that had begun before.
   * @throws AgentError `store.unavailable`, `log.rolled_back`, `log.corrupt`, `log.newer_schema`
   */
  catchUp({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#running === undefined) return this.#begin();
    this.#waiting ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#waiting = undefined;
        return this.#begin();
      });
    return this.#waiting;
  }

  /**
   * Takes what is new of a tail that was read when the view had ended at `asked` or later.
   * @throws AgentError `log.rolled_back`
   */
  take(tail: Tail, asked: Revision): 'taken' | 'gap' {
    this.#checkPast(tail, asked);
    const state = this.#state;
    const records: EntryRecord[] = [];
    for (const { record, stage } of tail.entries) {
      const next = state.revision + BigInt(records.length) + 1n;
      if (record.entry.revision < next) continue;
      const previous = records.at(-1)?.entry.digest ?? state.last.digest;
      if (record.entry.revision > next) return 'gap';
      if (record.entry.previousDigest !== previous) throw this.#rolledBack(tail.head);
      records.push(record);
      if (stage !== undefined) this.#stages.set(stage, record.entry.revision);
    }
    if (tail.head.last.revision >= this.#head) {
      this.#head = tail.head.last.revision;
      this.#version = tail.version;
      this.#applied = tail.applied;
    }
    if (records.length === 0) return state.revision < tail.head.last.revision && tail.entries.length === 0 ? 'gap' : 'taken';
    const { clock, memory } = this.#parts;
    state.append(records, tail.head.minimum, clock.monotonic());
    for (const [stage, place] of this.#stages) if (place < state.minimum) this.#stages.delete(stage);
    memory.write(state.logId, state.last);
    this.#watchers.wake();
    return 'taken';
  }

  /** Whether the view ends where the head was last seen. */
  get isCurrent(): boolean {
    return this.#state.revision === this.#head;
  }

  /** What another replica, or this one, has brought into the values. */
  applyMoved(applied: Applied): void {
    this.#applied = applied;
  }

  /** Until `signal` is aborted. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#poll(signal), this.#follow(signal)]);
  }

  close(): void {
    this.#closed.abort(new AgentError('log.closed'));
    this.#watchers.close();
  }

  #watchersOf(state: LogState): LogWatchers {
    const { store, clock } = this.#parts;
    const reader = { read: (first: Revision) => store.read(first, { signal: this.#closed.signal }).catch(cannotGoOn) };
    return new LogWatchers({ state, reader, clock, age: () => this.ageMs });
  }

  #begin(): Promise<void> {
    this.#running = this.#catchUp().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #catchUp(): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    const { store, clock, report } = this.#parts;
    const options = { signal: this.#closed.signal };
    const begun = clock.monotonic();
    let first = true;
    while (first || !this.isCurrent) {
      first = false;
      const asked = this.#state.revision;
      const tail = await store.tail(revision(asked + 1n), options);
      if (this.take(tail, asked) === 'gap') await this.#reload();
    }
    this.#currentAt = begun;
    report(undefined);
  }

  /** What it would have to read next is no longer kept: its watchers begin again as well. */
  async #reload(): Promise<void> {
    const loaded = await this.#parts.store.load({ signal: this.#closed.signal });
    this.#checkPast(loaded, this.#state.revision);
    this.#watchers.close();
    this.#state = new LogState(loaded.state, this.#parts.clock.monotonic());
    this.#watchers = this.#watchersOf(this.#state);
    this.#head = loaded.head.last.revision;
    this.#version = loaded.version;
    this.#applied = loaded.applied;
    this.#stages.clear();
    for (const [stage, place] of loaded.stages) this.#stages.set(stage, place);
    this.#parts.memory.write(this.#state.logId, this.#state.last);
  }

  /** A log that is shorter than it was, or another, was restored from an older copy (engine.md E3). */
  #checkPast({ head }: Pick<Tail, 'head'>, asked: Revision): void {
    const { logId, last } = this.#state;
    const same = head.logId === logId && head.last.revision >= asked;
    const forked = head.last.revision === last.revision && head.last.digest !== last.digest;
    if (!same || forked) throw this.#rolledBack(head);
  }

  /** From now on it serves nobody, until it is started again on a log that it can go on with. */
  #rolledBack({ logId, last }: Tail['head']): AgentError {
    const seen = this.#state.head;
    const problem = `etcd holds log ${logId} up to ${last.revision}, not as ${seen.logId} had been seen up to ${seen.revision}`;
    this.#broken ??= new AgentError('log.rolled_back', { problem });
    this.#watchers.close();
    return this.#broken;
  }

  async #poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#parts.clock.sleep(POLL_MS, { signal }).catch(() => {});
      if (!signal.aborted) await this.#look(signal);
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { client, clock, store } = this.#parts;
    while (!signal.aborted) {
      try {
        // From now on: what was before is read when it has begun.
        for await (const answer of client.watch({ prefix: store.headKey, revision: 0n }, { signal })) {
          const isNews = answer.kind !== 'events' || answer.events.some(({ kv }) => (kv?.modRevision ?? 0n) > this.#version);
          if (isNews) await this.#look(signal);
        }
      } catch (error) {
        this.#note(error, signal);
      }
      await clock.sleep(RETRY_MS, { signal }).catch(() => {});
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    try {
      await this.catchUp({ signal });
    } catch (error) {
      this.#note(error, signal);
    }
  }

  #note(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const problem =
      error instanceof AgentError ? error : new AgentError('log.corrupt', { problem: String(error) }, { cause: error });
    this.#parts.report(problem);
  }
}

/** To a watcher an etcd that is away is a log that is closed: it comes again. @throws AgentError */
export function cannotGoOn(error: unknown): never {
  if (!(error instanceof AgentError) || error.code !== 'store.unavailable') throw error;
  throw new AgentError('log.closed', { problem: error.message }, { cause: error });
}
