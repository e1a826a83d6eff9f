import type { InstructionKey, Reply } from '../../domain/instruction/model.js';
import type { Row } from '../../domain/instruction/row.js';
import type { Epoch } from '../../domain/link/model.js';
import type { Generation } from '../../domain/vip/model.js';
import type { CallOptions } from '../call-options.js';
import type { ProblemSource } from '../node/problem-source.js';

/** One step of a commit; steps of one commit happen together or not at all. */
export type JournalChange =
  /** The whole row, in the place of the one of its key. A new one is the youngest. */
  | { readonly change: 'row'; readonly row: Row }
  /** What it was asked with (`jsonB64`), kept for as long as it may be run again; undefined removes it. */
  | ({ readonly change: 'payload'; readonly key: InstructionKey; readonly jsonB64: string | undefined } & Secret)
  /** What it was answered with; `none` for an answer that is silence, undefined removes it and leaves the row as a tombstone. */
  | ({ readonly change: 'reply'; readonly key: InstructionKey; readonly reply: StoredReply | undefined } & Secret)
  /** A reply that could not be sent, kept for as long as the row (engine.md A15b). */
  | ({ readonly change: 'set_aside'; readonly key: InstructionKey; readonly reply: StoredReply } & Secret)
  | { readonly change: 'remove'; readonly key: InstructionKey }
  /** The highest of the fleet's streams. */
  | { readonly change: 'epoch'; readonly fleet: string; readonly epoch: Epoch }
  /** Of the virtual IP's last change that was applied. */
  | { readonly change: 'vip'; readonly fleet: string; readonly generation: Generation };

/** Sealed on disk, where the journal has a sealer. */
interface Secret {
  readonly secret?: boolean | undefined;
}

export type StoredReply = Reply | 'none';

/** A row and what is kept beside it. */
export interface JournalEntry {
  readonly row: Row;
  readonly hasPayload: boolean;
  readonly hasReply: boolean;
  /** Of the reply, 0 without one. */
  readonly replyBytes: number;
}

export interface OpenedJournal {
  /** Every row that is not only a tombstone: not finished, or with a reply. In the order in which they were received. */
  readonly live: readonly JournalEntry[];
  readonly epochs: ReadonlyMap<string, Epoch>;
}

/** Which journal it is and how far (engine.md A12): a server that has seen more of it knows that a memory is gone. */
export interface JournalFacts {
  readonly id: string;
  readonly counter: bigint;
}

/** What becomes of tombstones. */
export interface TombstoneLimits {
  /** Received before, wall clock; and expired before `expiredBefore`, if they had an expiry. */
  readonly receivedBefore: number;
  readonly expiredBefore: number;
  /** The youngest are kept. */
  readonly most: number;
}

/** The memory of instructions: what a restart knows of work and of results. */
export interface Journal extends ProblemSource {
  /**
   * Ready for calls when it resolves. A damaged file is set aside under another name, and the new one has another id. Safe to be called
   * again after it has failed.
   * @throws AgentError `journal.newer_schema`, `journal.unavailable`, `agent.data_dir_locked`
   */
  open(options: CallOptions): Promise<OpenedJournal>;

  /** Undefined before `open` and after `close`. The counter is that of the last commit that has resolved. */
  facts(): JournalFacts | undefined;

  /**
   * Durable when it resolves: it survives kill -9 and a power cut. In the order of the calls; those that wait together share one fsync.
   * On abort it is written or not.
   * @throws AgentError `journal.unavailable`: not written, as far as can be known; after a restart it may be there
   */
  commit(changes: readonly JournalChange[], options: CallOptions): Promise<void>;

  /** One for each key, in their order, as of all commits that had resolved; undefined where there is none. @throws AgentError `journal.unavailable` */
  find(keys: readonly InstructionKey[], options: CallOptions): Promise<readonly (JournalEntry | undefined)[]>;

  /** Undefined when it is not kept. @throws AgentError `journal.unavailable` */
  reply(key: InstructionKey, options: CallOptions): Promise<StoredReply | undefined>;

  /** A reply that was set aside, undefined when there is none. @throws AgentError `journal.unavailable` */
  setAside(key: InstructionKey, options: CallOptions): Promise<StoredReply | undefined>;

  /** Undefined when it is not kept. @throws AgentError `journal.unavailable` */
  payload(key: InstructionKey, options: CallOptions): Promise<string | undefined>;

  /** Of the virtual IP's last change; 0 when none is known. @throws AgentError `journal.unavailable` */
  vipGeneration(fleet: string, options: CallOptions): Promise<Generation>;

  /** Tombstones (finished, without reply) beyond the limits go. Repeats nothing and loses nothing else. @throws AgentError `journal.unavailable` */
  prune(limits: TombstoneLimits, options: CallOptions): Promise<void>;

  /** What was committed is durable. Safe before `open` and twice. */
  close(): Promise<void>;
}
