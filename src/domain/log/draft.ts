import { AgentError } from '../kernel/errors.js';
import { type EntryHead, type EntryRecord, nextEntry } from './entry.js';
import { type JudgedView, judge, type KeyState } from './judge.js';
import type { DigestOf, LogKey, Proposal, ProposeResult, Revision } from './model.js';
import { clockProblem, judgeTime, type ProposerTime } from './time.js';

/** A view that knows where the log ends. */
export interface DraftBase extends JudgedView {
  readonly last: EntryHead;
}

/**
 * Proposals judged one after the other, each on the state that its predecessor left, before any of it is written: the base stays
 * as it is. Throwing the draft away leaves no trace. Every answer holds only if the entries drafted before it are committed.
 */
export class Draft implements JudgedView {
  readonly #base: DraftBase;
  readonly #digestOf: DigestOf;
  readonly #records: EntryRecord[] = [];
  readonly #changed = new Map<LogKey, KeyState | undefined>();
  readonly #requests = new Map<string, Revision>();

  constructor(base: DraftBase, digestOf: DigestOf) {
    this.#base = base;
    this.#digestOf = digestOf;
  }

  get records(): readonly EntryRecord[] {
    return this.#records;
  }

  get revision(): Revision {
    return this.#last.revision;
  }

  get(key: LogKey): KeyState | undefined {
    return this.#changed.has(key) ? this.#changed.get(key) : this.#base.get(key);
  }

  answered(requestId: string): Revision | undefined {
    return this.#requests.get(requestId) ?? this.#base.answered(requestId);
  }

  /**
   * @throws what `judge` throws; AgentError `log.clock_ahead` for what would be an entry of a clock that is wrong. The draft is then
   *   as before
   */
  propose(proposal: Proposal, time: ProposerTime): ProposeResult {
    const judgement = judge(proposal, this);
    if (judgement.verdict === 'answer') return judgement.result;
    const judged = judgeTime(time, this.#last.time);
    if (judged.verdict === 'ahead') throw new AgentError('log.clock_ahead', { problem: clockProblem(judged) ?? '' });
    const content = { changes: judgement.changes, requestId: proposal.requestId };
    const record = nextEntry(this.#last, content, time.now, this.#digestOf);
    this.#append(record);
    return { outcome: 'committed', revision: record.entry.revision };
  }

  get #last(): EntryHead {
    return this.#records.at(-1)?.entry ?? this.#base.last;
  }

  #append(record: EntryRecord): void {
    const { revision, requestId, changes } = record.entry;
    this.#records.push(record);
    if (requestId !== undefined) this.#requests.set(requestId, revision);
    for (const { key, value } of changes) this.#changed.set(key, value === null ? undefined : { value, revision });
  }
}
