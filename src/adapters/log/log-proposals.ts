import { AgentError } from '../../domain/kernel/errors.js';
import { Draft } from '../../domain/log/draft.js';
import type { EntryHead } from '../../domain/log/entry.js';
import { proposalBytes } from '../../domain/log/judge.js';
import type { Proposal, ProposeResult } from '../../domain/log/model.js';
import type { LogState } from '../../domain/log/state.js';
import type { ProposerTime } from '../../domain/log/time.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { CommitOutcome, LogStore, StoredBatch } from './log-store.js';
import { sha256 } from './sha256.js';

/** A batch takes proposals up to either; a larger one goes alone. Judging 1,000 of 300 bytes takes 10 ms of the main thread. */
const BATCH_BYTES = 4 * 1024 * 1024;
const BATCH_PROPOSALS = 1_000;

/** How often a file that cannot be read is asked again for the outcome of a batch. */
const RESOLVE_MS = 1_000;

/** `broken`: the file was found damaged after a failed commit; reads go on, nothing more is written. */
export interface CommitEvent {
  readonly event: 'not_written' | 'in_doubt' | 'broken';
  readonly problem: string;
  readonly proposals: number;
}

interface ProposalsOptions {
  readonly state: LogState;
  readonly store: LogStore;
  readonly clock: Clock;
  readonly time: () => ProposerTime;
  readonly report: (event: CommitEvent) => void;
  /** After the state has changed, in the same step. */
  readonly onAppend: () => void;
}

interface Waiting {
  readonly proposal: Proposal;
  readonly bytes: number;
  readonly signal: AbortSignal;
  readonly resolve: (result: ProposeResult) => void;
  readonly reject: (error: unknown) => void;
}

interface Answered {
  readonly waiting: Waiting;
  readonly result: ProposeResult;
}

/**
 * Proposals in order of arrival. While one batch is being written, the next ones gather; then all that wait are judged and written
 * together, with one fsync. State changes, answers and watchers follow only after that.
 */
export class LogProposals {
  readonly #options: ProposalsOptions;
  readonly #stop = new AbortController();
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #closed = false;
  #inDoubt: string | undefined;

  constructor(options: ProposalsOptions) {
    this.#options = options;
  }

  /** As `OrderedLog.propose`. */
  propose(proposal: Proposal, { signal }: CallOptions): Promise<ProposeResult> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#closed) throw new AgentError('log.closed');
      if (this.#inDoubt !== undefined) throw notWritten(this.#inDoubt);
      const onAbort = () => reject(signal.reason);
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          signal.removeEventListener('abort', onAbort);
          settle(value);
        };
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const bytes = proposalBytes(proposal.changes);
      this.#queue.push({ proposal, bytes, signal, resolve: settled(resolve), reject: settled(reject) });
      this.#running ??= this.#run();
    });
  }

  /** What has been proposed is finished, unless the disk leaves it in doubt. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#inDoubt !== undefined) this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Whoever proposes in the same turn of the event loop shares the first batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) {
      const batch = this.#take();
      // A mistake of ours must not leave proposers waiting; the store then refuses what does not follow its last entry.
      await this.#runBatch(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
      });
    }
    this.#running = undefined;
  }

  #take(): readonly Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const waiting of this.#queue) {
      bytes += waiting.bytes;
      if (count > 0 && (bytes > BATCH_BYTES || count >= BATCH_PROPOSALS)) break;
      count += 1;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch.filter(({ signal }) => !signal.aborted);
  }

  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    const draft = new Draft(this.#options.state, sha256);
    const answered = batch.flatMap((waiting) => this.#judge(waiting, draft));
    const [first, last] = [draft.records[0], draft.records.at(-1)];
    if (first === undefined || last === undefined) return;
    const { state, clock, onAppend } = this.#options;
    const minimum = state.minimumAfter(draft.records);
    const records = draft.records.map(({ text, entry }) => ({ text, digest: entry.digest }));
    const outcome = await this.#commit({ previous: headOf(state.last), records, last: headOf(last.entry), minimum }, answered);
    if (outcome.outcome !== 'committed') return this.#fail(answered, outcome);
    state.append(draft.records, minimum, clock.monotonic());
    onAppend();
    for (const { waiting, result } of answered) waiting.resolve(result);
  }

  /** An answer that rests on nothing drafted is given at once; the others wait for what they rest on. */
  #judge(waiting: Waiting, draft: Draft): readonly Answered[] {
    try {
      const result = draft.propose(waiting.proposal, this.#options.time());
      if (draft.records.length > 0) return [{ waiting, result }];
      waiting.resolve(result);
    } catch (error) {
      waiting.reject(error);
    }
    return [];
  }

  async #commit(batch: StoredBatch, { length }: readonly Answered[]): Promise<CommitOutcome> {
    const { store, clock, report } = this.#options;
    let outcome = await store.commit(batch);
    while (outcome.outcome === 'in_doubt') {
      if (this.#inDoubt === undefined) report({ event: 'in_doubt', problem: outcome.problem, proposals: length });
      this.#refuseNew(outcome.problem);
      try {
        await clock.sleep(RESOLVE_MS, { signal: this.#stop.signal });
      } catch {
        return outcome;
      }
      outcome = await store.resolve(batch, outcome.problem);
    }
    this.#inDoubt = outcome.outcome === 'broken' ? outcome.problem : undefined;
    return outcome;
  }

  /** What has not been tried is certainly not written, and must not wait for a disk that may never come back. */
  #refuseNew(problem: string): void {
    this.#inDoubt = problem;
    if (this.#closed) this.#stop.abort();
    for (const waiting of this.#queue) waiting.reject(notWritten(problem));
    this.#queue = [];
  }

  #fail(answered: readonly Answered[], outcome: Exclude<CommitOutcome, { outcome: 'committed' }>): void {
    const { problem } = outcome;
    this.#options.report({ event: outcome.outcome, problem, proposals: answered.length });
    for (const { waiting } of answered) waiting.reject(failure(outcome));
  }
}

function failure({ outcome, problem }: Exclude<CommitOutcome, { outcome: 'committed' }>): AgentError {
  switch (outcome) {
    case 'not_written':
      return notWritten(problem);
    case 'in_doubt':
      return new AgentError('log.closed', { problem: `it is not known whether it was written: ${problem}` });
    case 'broken':
      return new AgentError('log.corrupt', { problem });
  }
}

/** Without the changes, which would be sent to the worker a second time. */
function headOf({ revision, digest, time }: EntryHead): EntryHead {
  return { revision, digest, time };
}

function notWritten(problem: string): AgentError {
  return new AgentError('log.not_written', { problem });
}
