import { AgentError } from '../../domain/kernel/errors.js';
import { Draft } from '../../domain/log/draft.js';
import { proposalBytes, utf8Length } from '../../domain/log/judge.js';
import type { Proposal, ProposeResult, Revision } from '../../domain/log/model.js';
import { revision } from '../../domain/log/model.js';
import type { ProposerTime } from '../../domain/log/time.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { EtcdLogFollower } from './etcd-log-follower.js';
import type { EtcdBatch, EtcdCommit, EtcdLogStore } from './etcd-log-store.js';
import { sha256 } from './sha256.js';

/** One transaction takes 124 entries and values, and 1.4 MB: entries and values both, with some room for escapes. */
const BATCH_OPERATIONS = 120;
const BATCH_BYTES = 512 * 1024;
/** etcd refuses 1.5 MiB, of which the key and the frame need some. */
const MOST_VALUE_BYTES = 1_400_000;

/** From the moment a batch is sent first: after that its outcome is unknown to those who wait (engine.md E10). */
const WRITE_MS = 4_500;
const RETRY_MS = 100;

interface ProposalsParts {
  readonly follower: EtcdLogFollower;
  readonly store: EtcdLogStore;
  readonly clock: Clock;
  readonly time: () => ProposerTime;
  readonly newId: () => string;
  /** After a commit that left values behind. */
  readonly onLag: () => void;
  readonly report: (problem: AgentError | undefined) => void;
}

interface Waiting {
  readonly proposal: Proposal;
  readonly signal: AbortSignal;
  readonly resolve: (result: ProposeResult) => void;
  readonly reject: (error: unknown) => void;
}

interface Answered {
  readonly waiting: Waiting;
  readonly result: ProposeResult;
}

type Outcome = EtcdCommit | { readonly outcome: 'not_written' | 'unknown'; readonly problem: string };

/**
 * Proposals in order of arrival. While one batch is on its way, the next ones gather. Each batch is judged on this replica's view and
 * compared with the head that was there; one that comes late is judged again on what came before it.
 */
export class EtcdLogProposals {
  readonly #parts: ProposalsParts;
  readonly #stop = new AbortController();
  readonly #closing = new AbortController();
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(parts: ProposalsParts) {
    this.#parts = parts;
  }

  /** As `OrderedLog.propose`. */
  propose(proposal: Proposal, { signal }: CallOptions): Promise<ProposeResult> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#closing.signal.aborted) throw new AgentError('log.closed');
      checkValues(proposal);
      const onAbort = () => reject(signal.reason);
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          signal.removeEventListener('abort', onAbort);
          settle(value);
        };
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.push({ proposal, signal, resolve: settled(resolve), reject: settled(reject) });
      this.#running ??= this.#run();
    });
  }

  /** What has been proposed is finished, or its outcome is unknown. */
  async close(): Promise<void> {
    this.#closing.abort(new AgentError('log.closed'));
    await this.#running;
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    // Whoever proposes in the same turn of the event loop shares the first batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) {
      const batch = this.#take();
      await this.#runBatch(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
      });
    }
    this.#running = undefined;
  }

  #take(): readonly Waiting[] {
    let [operations, bytes, count] = [0, 0, 0];
    for (const { proposal } of this.#queue) {
      operations += 1 + proposal.changes.length;
      bytes += proposalBytes(proposal.changes);
      if (count > 0 && (operations > BATCH_OPERATIONS || bytes > BATCH_BYTES)) break;
      count += 1;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch.filter(({ signal }) => !signal.aborted);
  }

  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    const { follower, time } = this.#parts;
    let waiting = batch;
    while (waiting.length > 0) {
      if (!follower.isCurrent) await this.#catchUp();
      const draft = new Draft(follower.state, sha256);
      const answered = waiting.flatMap((each) => judged(each, draft, time()));
      waiting = answered.map((each) => each.waiting);
      const isDone = draft.records.length === 0 ? await this.#confirm() : await this.#write(draft, answered);
      if (!isDone) continue;
      for (const { waiting, result } of answered) waiting.resolve(result);
      return;
    }
  }

  /** Answers that rest on the view alone hold only if it is the newest one (engine.md E7). */
  async #confirm(): Promise<boolean> {
    const { state } = this.#parts.follower;
    const { revision } = state;
    await this.#catchUp();
    return this.#parts.follower.state === state && state.revision === revision;
  }

  async #catchUp(): Promise<void> {
    try {
      await this.#parts.follower.catchUp({ signal: this.#stop.signal });
    } catch (error) {
      throw notWritten(error);
    }
  }

  /** Whether the drafted entries are the log's. */
  async #write(draft: Draft, answered: readonly Answered[]): Promise<boolean> {
    const { follower, onLag, report } = this.#parts;
    const batch = this.#batchOf(draft);
    const asked = follower.state.revision;
    const outcome = await this.#commit(batch);
    if (outcome.outcome === 'committed' || outcome.outcome === 'overtaken') {
      if (follower.take(outcome.tail, asked) === 'gap') await this.#catchUp();
      report(undefined);
      if (follower.applied.revision < follower.state.revision) onLag();
      return outcome.outcome === 'committed' || outcome.tail.entries[0]?.batch === batch.id;
    }
    const { problem } = outcome;
    this.#refuseWaiting(problem);
    if (outcome.outcome === 'not_written') throw new AgentError('log.not_written', { problem });
    for (const { waiting } of answered) waiting.reject(unknown(waiting.proposal, problem));
    report(new AgentError('log.outcome_unknown', { problem }));
    throw new AgentError('log.outcome_unknown', { problem });
  }

  #batchOf({ records }: Draft): EtcdBatch {
    const { follower, newId } = this.#parts;
    const { state, version, applied } = follower;
    const wanted = state.minimumAfter(records);
    // What the values do not hold yet is still needed.
    const needed: Revision = revision(applied.revision + 1n);
    const minimum = wanted < needed ? wanted : needed;
    return { id: newId(), logId: state.logId, previous: state.last, version, applied, records, minimum };
  }

  /** The same transaction until the store answers definitely, for 4.5 s (engine.md E7, E10). */
  async #commit(batch: EtcdBatch): Promise<Outcome> {
    const { store, clock } = this.#parts;
    const options = { signal: this.#stop.signal };
    let wasSent = false;
    try {
      const stored = await store.stage(batch, options);
      const begun = clock.monotonic();
      for (;;) {
        const withinMs = Math.max(RETRY_MS, WRITE_MS - (clock.monotonic() - begun));
        try {
          return await store.commit(batch, stored, { ...options, withinMs });
        } catch (error) {
          const isUnknown = error instanceof AgentError && error.code === 'store.outcome_unknown';
          const isAway = error instanceof AgentError && error.code === 'store.unavailable';
          if (!isUnknown && !(isAway && wasSent)) throw error;
          wasSent = true;
          if (clock.monotonic() - begun >= WRITE_MS) return { outcome: 'unknown', problem: error.message };
        }
        await clock.sleep(RETRY_MS, { signal: this.#closing.signal });
      }
    } catch (error) {
      return { outcome: wasSent ? 'unknown' : 'not_written', problem: error instanceof Error ? error.message : String(error) };
    }
  }

  /** What has not been tried is certainly not written, and must not wait for a quorum that may stay away. */
  #refuseWaiting(problem: string): void {
    for (const { reject } of this.#queue) reject(new AgentError('log.not_written', { problem }));
    this.#queue = [];
  }
}

/** What no state could make valid is rejected at once. */
function judged(waiting: Waiting, draft: Draft, time: ProposerTime): readonly Answered[] {
  try {
    return [{ waiting, result: draft.propose(waiting.proposal, time) }];
  } catch (error) {
    waiting.reject(error);
    return [];
  }
}

function checkValues({ changes }: Proposal): void {
  for (const { key, value } of changes) {
    if (value === null || value.length * 3 <= MOST_VALUE_BYTES) continue;
    const bytes = utf8Length(value);
    if (bytes > MOST_VALUE_BYTES)
      throw new AgentError('log.too_large', {
        problem: `${key} has ${bytes} bytes; etcd takes ${MOST_VALUE_BYTES} of one value`,
      });
  }
}

function unknown({ requestId }: Proposal, problem: string): AgentError {
  const id = requestId === undefined ? {} : { requestId };
  const named = requestId === undefined ? '' : `, request id ${requestId}`;
  return new AgentError('log.outcome_unknown', { problem: `outcome unknown${named}: ${problem}`, ...id });
}

function notWritten(error: unknown): AgentError {
  if (error instanceof AgentError && error.code !== 'store.unavailable' && error.code !== 'store.outcome_unknown') return error;
  return new AgentError('log.not_written', { problem: error instanceof Error ? error.message : String(error) }, { cause: error });
}
