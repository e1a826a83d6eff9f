import type { Cursor, LogFrame, Proposal, ProposeResult, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../call-options.js';
import type { ProblemSource } from '../node/problem-source.js';

/** One totally ordered stream of changes: the only way in which state reaches a node. */
export interface OrderedLog {
  /**
   * Durable when it resolves with `committed`: it survives kill -9. Proposals are judged one after the other, each on the state
   * that its predecessor left; one that fails consumes no revision and leaves no trace. On abort it is written or not; the
   * same `requestId` again tells. No proposer waits for a watcher.
   * @throws AgentError `log.not_written` (certainly not written), `log.too_large`, `log.closed`
   */
  propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult>;

  /**
   * The values of all keys that begin with `prefix` (all for the empty one), sorted by key, as of one revision that holds every
   * proposal that had resolved when the call was made.
   * @throws AgentError `log.closed`
   */
  snapshot(prefix: string, options: CallOptions): Promise<Snapshot>;

  /** The newest cursor, with every proposal in it that had resolved when the call was made. */
  head(options: CallOptions): Promise<Cursor>;

  /**
   * Every entry after `from`, each once, whole and in order, from replay to live without a gap; a bookmark at the latest every
   * 5 s. Ends without an error on abort. A watcher that is not read holds up nobody.
   * @throws AgentError `log.changed` (another log, or another past), `log.compacted`, `log.slow`, `log.closed`
   */
  watch(from: Cursor, options: CallOptions): AsyncIterable<LogFrame>;
}

/** A log that this process holds itself. Its problems are those of the newest commit or copy; a commit that succeeds ends them. */
export interface OwnedLog extends OrderedLog, ProblemSource {
  /**
   * Ready for calls when it resolves.
   * @throws AgentError `log.corrupt`, `log.newer_schema`, `log.not_written`
   */
  open(options: CallOptions): Promise<void>;
  /**
   * As `head`, which may fall back on what this process last knew: this one does not.
   * @throws AgentError `store.unavailable` when nobody can tell what the newest is; as `head`
   */
  newest(options: CallOptions): Promise<Cursor>;
  /** Proposals in flight are finished, watchers end with `log.closed`. Safe before `open` and twice. */
  close(): Promise<void>;
}
