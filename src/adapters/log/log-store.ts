import type { EntryHead } from '../../domain/log/entry.js';
import type { Digest, Entry, LogId, Revision } from '../../domain/log/model.js';
import type { StoredState } from '../../domain/log/state.js';

/** Drafted entries that are written together. */
export interface StoredBatch {
  readonly previous: EntryHead;
  readonly records: readonly { readonly text: string; readonly digest: Digest }[];
  readonly last: EntryHead;
  /** Older entries are dropped in the same transaction. */
  readonly minimum: Revision;
}

export type CommitOutcome =
  /** Durable. */
  | { readonly outcome: 'committed' }
  /** Certainly not in the file, now or later. */
  | { readonly outcome: 'not_written'; readonly problem: string }
  /** The file cannot be read at present: to be asked again. */
  | { readonly outcome: 'in_doubt'; readonly problem: string }
  /** The file is damaged: there is no more to learn from it. */
  | { readonly outcome: 'broken'; readonly problem: string };

export interface OpenedLog extends StoredState {
  /** When the newest hourly copy was made, milliseconds since the Unix epoch. */
  readonly newestCopy: number | undefined;
}

/** Where a log is kept. Calls are carried out one after the other. */
export interface LogStore {
  /** @throws AgentError `log.corrupt`, `log.newer_schema`, `log.not_written`, `agent.data_dir_locked` */
  open(): Promise<OpenedLog>;
  /** One transaction. Does not throw. */
  commit(batch: StoredBatch): Promise<CommitOutcome>;
  /** The outcome of a batch that was in doubt. Does not throw. */
  resolve(batch: StoredBatch, problem: string): Promise<CommitOutcome>;
  /**
   * Some entries from `first` on, verified.
   * @throws AgentError `log.corrupt`, `log.closed`
   */
  read(first: Revision): Promise<readonly Entry[]>;
  /** One more verified copy, the newest 3 are kept. */
  copy(now: number): Promise<{ readonly file: string; readonly revision: Revision }>;
  /** A verified copy of it as of one moment, in a new file. @throws AgentError `log.not_written`, `log.closed` */
  copyTo(file: string): Promise<{ readonly logId: LogId; readonly revision: Revision }>;
  /** Everything is released when it resolves. Safe at any time and twice. */
  close(): Promise<void>;
}
