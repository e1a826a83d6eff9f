import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import { type Cursor, type LogFrame, logId, type Proposal, type ProposeResult, type Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { OwnedLog } from '../../ports/log/ordered-log.js';
import type { EtcdClient } from '../etcd/etcd-client.js';
import { ensureFolder } from '../files/durable-file.js';
import { EtcdLogApplier } from './etcd-log-applier.js';
import { cannotGoOn, EtcdLogFollower } from './etcd-log-follower.js';
import { EtcdLogMemory } from './etcd-log-memory.js';
import { EtcdLogProposals } from './etcd-log-proposals.js';
import { EtcdLogStore } from './etcd-log-store.js';
import { LogClock } from './log-clock.js';

export interface EtcdLogOptions {
  /** Closed by whoever made it, after the log. */
  readonly client: EtcdClient;
  /** What all keys begin with, as `/holdfast/CLUSTER/log/`. */
  readonly prefix: string;
  /** Where this machine keeps the newest revision that it has seen. Its folder is made (0700) when it is missing. */
  readonly witness: string;
  readonly clock: Clock;
  /** The newest clock of the other servers that live; undefined when there is none. */
  readonly others?: () => number | undefined;
}

/** What exists while the log is open. */
interface Parts {
  readonly follower: EtcdLogFollower;
  readonly proposals: EtcdLogProposals;
  readonly running: Promise<unknown>;
}

/** One replica of a log that control planes share in etcd: the whole state in memory, every proposal one transaction. */
export class EtcdOrderedLog implements OwnedLog {
  readonly #options: EtcdLogOptions;
  readonly #store: EtcdLogStore;
  readonly #memory: EtcdLogMemory;
  readonly #time: LogClock;
  readonly #stop = new AbortController();
  #trouble: StatusProblem | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #parts: Parts | undefined;

  constructor(options: EtcdLogOptions) {
    this.#options = options;
    this.#store = new EtcdLogStore(options.client, options.prefix);
    this.#memory = new EtcdLogMemory(options.witness);
    this.#time = new LogClock(options.clock, options.others);
  }

  /** Makes the log where there is none. @throws as `OwnedLog.open`; AgentError `log.rolled_back`, `store.unavailable` */
  async open({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#closing !== undefined) throw new AgentError('log.closed');
    this.#opening ??= this.#open({ signal });
    await this.#opening;
    if (!signal.aborted) return;
    await this.close();
    signal.throwIfAborted();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    options.signal.throwIfAborted();
    return this.#ready.proposals.propose(proposal, options);
  }

  /** While etcd is away, as of what this replica last knew; `problems` says since when (engine.md E10). */
  async snapshot(prefix: string, options: CallOptions): Promise<Snapshot> {
    const { state } = await this.#current(options);
    return state.snapshot(prefix);
  }

  /** As `snapshot`. */
  async head(options: CallOptions): Promise<Cursor> {
    const { state } = await this.#current(options);
    return state.head;
  }

  async newest(options: CallOptions): Promise<Cursor> {
    options.signal.throwIfAborted();
    await this.#await(this.#ready.follower.catchUp(options), options);
    return this.#ready.follower.state.head;
  }

  async *watch(from: Cursor, options: CallOptions): AsyncGenerator<LogFrame, void, undefined> {
    if (options.signal.aborted) return;
    const { follower } = this.#ready;
    const isAhead = from.logId === follower.state.logId && from.revision > follower.state.revision;
    // Another replica may have shown it what this one has yet to see.
    if (isAhead)
      await this.#await(follower.catchUp(options), options).catch((error) => options.signal.aborted || cannotGoOn(error));
    if (options.signal.aborted) return;
    yield* this.#ready.follower.watchers.watch(from, options);
  }

  problems(): readonly StatusProblem[] {
    const head = this.#parts?.follower.state.last.time;
    const ofClock = head === undefined ? [] : this.#time.problems(head);
    return this.#trouble === undefined ? ofClock : [this.#trouble, ...ofClock];
  }

  async #current(options: CallOptions): Promise<EtcdLogFollower> {
    options.signal.throwIfAborted();
    const { follower } = this.#ready;
    try {
      await this.#await(follower.catchUp(options), options);
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'store.unavailable') throw error;
    }
    return this.#ready.follower;
  }

  /** Whoever has given up does not wait for etcd. */
  async #await(work: Promise<void>, { signal }: CallOptions): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([work, promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #note(problem: AgentError | undefined): void {
    const since = this.#trouble?.since ?? this.#options.clock.now();
    this.#trouble =
      problem === undefined ? undefined : { subject: 'log-store', reason: problem.message, since, remedy: problem.remedy };
  }

  get #ready(): Parts {
    if (this.#parts === undefined || this.#closing !== undefined) throw new AgentError('log.closed');
    return this.#parts;
  }

  async #open(options: CallOptions): Promise<void> {
    const { clock, client, witness } = this.#options;
    const [store, memory] = [this.#store, this.#memory];
    const report = (problem: AgentError | undefined) => this.#note(problem);
    await ensureFolder(dirname(witness));
    // A machine that has seen a log does not make another in its place: `open` then says what is missing.
    if (memory.read() === undefined) await store.create(logId(randomUUID()), options);
    const follower = await EtcdLogFollower.open({ store, client, clock, memory, report }, options);
    const applier = new EtcdLogApplier({ follower, store, clock });
    const onLag = () => applier.ask();
    const time = () => this.#time.time();
    const proposals = new EtcdLogProposals({ follower, store, clock, time, newId: randomUUID, onLag, report });
    const running = Promise.all([follower.run(this.#stop.signal), applier.run(this.#stop.signal)]);
    this.#parts = { follower, proposals, running };
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => {});
    const parts = this.#parts;
    if (parts !== undefined) {
      await parts.proposals.close();
      this.#stop.abort();
      parts.follower.close();
      await parts.running;
    }
    this.#memory.close();
  }
}
