/** A proposer whose clock is so far behind the head is named; its entries take the head's time. */
export const BEHIND_MS = 5_000;
/** A proposer whose clock is so far ahead of all that others have said is refused. */
export const AHEAD_MS = 60_000;

/** What a proposal's time is judged by; wall clocks, milliseconds since the Unix epoch. */
export interface ProposerTime {
  /** The proposer's own clock. */
  readonly now: number;
  /**
   * The newest clock of the other servers that live; undefined when there is none. A server that is alone has nobody to be
   * measured by: its clock is the fleet's, and refusing it would stop a log that was idle for a minute.
   */
  readonly others: number | undefined;
}

export type TimeJudgement =
  | { readonly verdict: 'right' }
  /** What it proposes is taken, with the head's time. */
  | { readonly verdict: 'behind'; readonly byMs: number }
  /** What it proposes is refused: it would end cool-downs and the 24 hours that entries are kept, for everybody. */
  | { readonly verdict: 'ahead'; readonly byMs: number };

/** Whether `head`, the log time of the newest entry, can be followed by an entry of this proposer (engine.md E19). */
export function judgeTime({ now, others }: ProposerTime, head: number): TimeJudgement {
  if (head - now > BEHIND_MS) return { verdict: 'behind', byMs: head - now };
  const known = Math.max(head, others ?? Number.POSITIVE_INFINITY);
  return now - known > AHEAD_MS ? { verdict: 'ahead', byMs: now - known } : { verdict: 'right' };
}

/** For people: `7,200 s ahead of ...` or `behind`; undefined when the clock is right. */
export function clockProblem(judgement: TimeJudgement): string | undefined {
  if (judgement.verdict === 'right') return undefined;
  const seconds = Math.round(judgement.byMs / 1000);
  return judgement.verdict === 'ahead'
    ? `the clock of this machine is ${seconds} s ahead of the log and of the other servers: what it proposes is refused`
    : `the clock of this machine is ${seconds} s behind the log: what it proposes gets the time of the newest entry`;
}
