import { AgentError, errorCodes } from '../../domain/kernel/errors.js';
import type { Cursor, LogFrame, LogId, Proposal, ProposeResult, Revision, Snapshot } from '../../domain/log/model.js';
import { LogState } from '../../domain/log/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { OwnedLog } from '../../ports/log/ordered-log.js';
import { restoreCommand } from '../sqlite/sqlite-errors.js';
import { LogClock } from './log-clock.js';
import { type CopyEvent, LogCopies } from './log-copies.js';
import { type CommitEvent, LogProposals } from './log-proposals.js';
import type { LogStore, OpenedLog } from './log-store.js';
import { LogWatchers } from './log-watchers.js';
import { SqliteLogStore } from './sqlite-log-store.js';

/** What people should see in a log of the program. Nothing of it needs an answer. */
export type LogEvent = CopyEvent | CommitEvent;

export interface SqliteLogOptions {
  /** The database, `log.db`; its WAL, witness and copies stand beside it. Its folder is made (0700) when it is missing. */
  readonly file: string;
  readonly clock: Clock;
  /** The newest clock of the other servers that live; undefined when there is none. */
  readonly others?: () => number | undefined;
  readonly report?: (event: LogEvent) => void;
  /** Where the file is kept; for tests. */
  readonly store?: LogStore;
}

/** What exists while the log is open. */
interface Parts {
  readonly state: LogState;
  readonly proposals: LogProposals;
  readonly watchers: LogWatchers;
  readonly stop: AbortController;
  readonly copies: Promise<void>;
}

/** The log of a single control plane: state in memory, durable in SQLite, whose every wait is in a worker thread. */
export class SqliteOrderedLog implements OwnedLog {
  readonly #options: SqliteLogOptions;
  readonly #store: LogStore;
  readonly #time: LogClock;
  readonly #report: (event: LogEvent) => void;
  #trouble: StatusProblem | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #parts: Parts | undefined;

  constructor(options: SqliteLogOptions) {
    this.#options = options;
    this.#store = options.store ?? new SqliteLogStore(options.file);
    this.#time = new LogClock(options.clock, options.others);
    this.#report = (event) => {
      if (event.event !== 'copied') this.#note(event);
      options.report?.(event);
    };
  }

  async open({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#closing !== undefined) throw new AgentError('log.closed');
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

  async propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    options.signal.throwIfAborted();
    return this.#ready.proposals.propose(proposal, options);
  }

  async snapshot(prefix: string, { signal }: CallOptions): Promise<Snapshot> {
    signal.throwIfAborted();
    return this.#ready.state.snapshot(prefix);
  }

  async head({ signal }: CallOptions): Promise<Cursor> {
    signal.throwIfAborted();
    return this.#ready.state.head;
  }

  /** Nobody else writes into the file. */
  newest(options: CallOptions): Promise<Cursor> {
    return this.head(options);
  }

  async *watch(from: Cursor, options: CallOptions): AsyncGenerator<LogFrame, void, undefined> {
    if (options.signal.aborted) return;
    yield* this.#ready.watchers.watch(from, options);
  }

  /** A verified copy as of one moment, in a new file (0600). @throws AgentError `log.not_written`, `log.closed` */
  async copyTo(file: string): Promise<{ readonly logId: LogId; readonly revision: Revision }> {
    if (this.#parts === undefined || this.#closing !== undefined) throw new AgentError('log.closed');
    return this.#store.copyTo(file);
  }

  problems(): readonly StatusProblem[] {
    const ofClock = this.#parts === undefined ? [] : this.#time.problems(this.#parts.state.last.time);
    return this.#trouble === undefined ? ofClock : [this.#trouble, ...ofClock];
  }

  #note(event: Exclude<LogEvent, { readonly event: 'copied' }>): void {
    const reason = event.event === 'copy_failed' ? `no copy could be made: ${String(event.error)}` : event.problem;
    const restore = `stop the daemon and run \`${restoreCommand(this.#options.file)}\``;
    const remedy = event.event === 'broken' ? restore : errorCodes['log.not_written'].remedy;
    const since = this.#trouble?.since ?? this.#options.clock.now();
    this.#trouble = { subject: 'log-store', reason, since, remedy };
  }

  get #ready(): Parts {
    if (this.#parts === undefined || this.#closing !== undefined) throw new AgentError('log.closed');
    return this.#parts;
  }

  async #open(): Promise<void> {
    try {
      this.#parts = this.#assemble(await this.#store.open());
    } catch (error) {
      await this.#store.close();
      throw error;
    }
  }

  #assemble(opened: OpenedLog): Parts {
    const { clock } = this.#options;
    const [store, report] = [this.#store, this.#report];
    const state = new LogState(opened, clock.monotonic());
    const watchers = new LogWatchers({ state, reader: store, clock });
    const onAppend = () => {
      this.#trouble = undefined;
      watchers.wake();
    };
    const time = () => this.#time.time();
    const proposals = new LogProposals({ state, store, clock, time, report, onAppend });
    const stop = new AbortController();
    const copies = new LogCopies({ store, clock, report, head: () => state.revision }).run(opened.newestCopy, stop.signal);
    return { state, proposals, watchers, stop, copies };
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => {});
    const parts = this.#parts;
    if (parts !== undefined) {
      parts.stop.abort();
      await parts.proposals.close();
      parts.watchers.close();
      await parts.copies;
    }
    await this.#store.close();
  }
}
