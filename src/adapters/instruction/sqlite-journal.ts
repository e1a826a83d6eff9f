import { dirname } from 'node:path';
import type { InstructionKey } from '../../domain/instruction/model.js';
import { AgentError, errorCodes } from '../../domain/kernel/errors.js';
import type { Generation } from '../../domain/vip/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type {
  Journal,
  JournalChange,
  JournalEntry,
  JournalFacts,
  OpenedJournal,
  StoredReply,
  TombstoneLimits,
} from '../../ports/instruction/journal.js';
import { ensureFolder } from '../files/durable-file.js';
import { startWorker } from '../threads/typescript-worker.js';
import { WorkerCalls } from '../threads/worker-calls.js';
import type { CommitResult, JournalCall, OpenedFile } from './sqlite-journal-protocol.js';
import { RESERVE_BYTES } from './sqlite-journal-reserve.js';

/** Commits that arrive in this time share one fsync (engine.md A2). */
const GATHER_MS = 2;

export interface SqliteJournalOptions {
  /** The database, `journal.db`; its WAL and a reserve of 16 MiB stand beside it. Its folder is made (0700) when it is missing. */
  readonly file: string;
  readonly clock: Clock;
  /** For tests. */
  readonly reserveBytes?: number;
}

interface Waiting {
  readonly changes: readonly JournalChange[];
  readonly signal: AbortSignal;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The journal of this node, in SQLite, whose every wait is in a worker thread. A worker that died is started again by the next call. */
export class SqliteJournal implements Journal {
  readonly #options: SqliteJournalOptions;
  readonly #thread: WorkerCalls<JournalCall>;
  #state: 'new' | 'open' | 'closed' = 'new';
  #facts: JournalFacts | undefined;
  #waiting: Waiting[] = [];
  #committing: Promise<void> | undefined;
  #setAside: StatusProblem | undefined;
  #trouble: StatusProblem | undefined;

  constructor(options: SqliteJournalOptions) {
    const { file, reserveBytes = RESERVE_BYTES } = options;
    this.#options = options;
    this.#thread = new WorkerCalls({
      start: () => startWorker('./sqlite-journal-worker', import.meta.url, { file, reserveBytes }),
      lost: (cause) => new AgentError('journal.unavailable', { problem: 'its thread has ended' }, { cause }),
    });
  }

  async open({ signal }: CallOptions): Promise<OpenedJournal> {
    signal.throwIfAborted();
    if (this.#state === 'closed') throw closed();
    const { file, clock } = this.#options;
    try {
      await ensureFolder(dirname(file));
      const { facts, setAside, ...opened } = await this.#thread.ask<OpenedFile>({ call: 'open', now: clock.now() });
      this.#facts = facts;
      this.#state = 'open';
      this.#trouble = undefined;
      if (setAside !== undefined)
        this.#setAside = this.#problem(`the journal was damaged and stands aside as ${setAside}`, DAMAGED);
      return opened;
    } catch (error) {
      const failure = error instanceof AgentError ? error : unavailable(error);
      this.#trouble = this.#problem(failure.message, failure.remedy);
      throw failure;
    }
  }

  facts(): JournalFacts | undefined {
    return this.#state === 'open' ? this.#facts : undefined;
  }

  commit(changes: readonly JournalChange[], { signal }: CallOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#state !== 'open') throw closed();
      this.#waiting.push({ changes, signal, resolve, reject });
      this.#committing ??= this.#commitAll();
    });
  }

  find(keys: readonly InstructionKey[], options: CallOptions): Promise<readonly (JournalEntry | undefined)[]> {
    return this.#read({ call: 'find', keys }, options);
  }

  reply(key: InstructionKey, options: CallOptions): Promise<StoredReply | undefined> {
    return this.#read({ call: 'reply', key }, options);
  }

  setAside(key: InstructionKey, options: CallOptions): Promise<StoredReply | undefined> {
    return this.#read({ call: 'setAside', key }, options);
  }

  payload(key: InstructionKey, options: CallOptions): Promise<string | undefined> {
    return this.#read({ call: 'payload', key }, options);
  }

  vipGeneration(fleet: string, options: CallOptions): Promise<Generation> {
    return this.#read({ call: 'vipGeneration', fleet }, options);
  }

  prune(limits: TombstoneLimits, options: CallOptions): Promise<void> {
    return this.#read({ call: 'prune', limits }, options);
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    await this.#committing;
    await this.#thread.close({ call: 'close' });
  }

  problems(): readonly StatusProblem[] {
    return [this.#setAside, this.#trouble].filter((problem) => problem !== undefined);
  }

  /** What gathers while one group is being written is the next. */
  async #commitAll(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
    while (this.#waiting.length > 0) {
      const group = this.#waiting.filter(({ signal }) => !signal.aborted);
      for (const { signal, reject } of this.#waiting) if (signal.aborted) reject(signal.reason);
      this.#waiting = [];
      if (group.length > 0) await this.#commitGroup(group);
    }
    this.#committing = undefined;
  }

  async #commitGroup(group: readonly Waiting[]): Promise<void> {
    try {
      const commits = group.map(({ changes }) => changes);
      const { facts, problems } = await this.#thread.ask<CommitResult>({ call: 'commit', commits });
      if (facts.id !== '') this.#facts = facts;
      const failure = problems.find((problem) => problem !== undefined);
      this.#trouble = failure === undefined ? undefined : this.#problem(failure, errorCodes['journal.unavailable'].remedy);
      for (const [place, { resolve, reject }] of group.entries()) {
        const problem = problems[place];
        if (problem === undefined) resolve();
        else reject(new AgentError('journal.unavailable', { problem }));
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  async #read<T>(call: JournalCall, { signal }: CallOptions): Promise<T> {
    signal.throwIfAborted();
    if (this.#state !== 'open') throw closed();
    return this.#thread.ask<T>(call);
  }

  #problem(reason: string, remedy: string): StatusProblem {
    return { subject: 'journal', reason, since: this.#trouble?.since ?? this.#options.clock.now(), remedy };
  }
}

const DAMAGED =
  'look at what ran on this node lately: what was not answered is not known any more; remove the file when it is of no use';

function closed(): AgentError {
  return new AgentError('journal.unavailable', { problem: 'the journal is not open' });
}

function unavailable(cause: unknown): AgentError {
  const problem = cause instanceof Error ? cause.message : String(cause);
  return new AgentError('journal.unavailable', { problem }, { cause });
}
