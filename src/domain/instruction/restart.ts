import { isFinished, type Row } from './row.js';

/** The second death is final, so that an instruction that kills the agent cannot loop (engine.md A7). */
export const MOST_ATTEMPTS = 2;

/** What the runner's folder says of a started instruction; undefined when it has no task of its own. */
export type TaskEvidence = 'not_started' | 'running' | 'exited' | 'interrupted' | undefined;

export type RestartDecision =
  /** It has a result, which is offered. */
  | 'offer'
  /** Its task runs or has ended: the true result is taken from there. */
  | 'adopt'
  /** Once more, before anything newer. */
  | 'rerun'
  /** It had no effect: the server sends it again, or is told so (engine.md A6). */
  | 'not_started'
  /** It may have taken effect, and nobody knows (engine.md A5). */
  | 'interrupted';

/** What becomes of a journal's row after the death of the process that wrote it (engine.md A5 to A7). */
export function afterRestart(row: Row, evidence: TaskEvidence, hasPayload: boolean, now: number): RestartDecision {
  if (isFinished(row)) return 'offer';
  if (row.state === 'received') return 'not_started';
  if (evidence === 'running' || evidence === 'exited') return 'adopt';
  const expired = row.expiresAt !== undefined && now >= row.expiresAt;
  // A probe looks at what the first attempt has done before it acts.
  const converges = row.repeat === 'repeat' || row.repeat === 'probe';
  const mayRepeat = converges && hasPayload && row.attempt < MOST_ATTEMPTS && !expired;
  if (mayRepeat) return 'rerun';
  return evidence === 'not_started' && row.attempt < MOST_ATTEMPTS ? 'not_started' : 'interrupted';
}

export function interruptedText({ attempt, step }: Row): string {
  const which = attempt > 1 ? ` (attempt ${attempt})` : '';
  const reached = step === undefined ? 'it was started' : `it had reached: ${step}`;
  return `INTERRUPTED${which}: ${reached}; it may have taken effect, and no repeat of this tag runs`;
}

export const NOT_STARTED_TEXT = 'NOT_STARTED: the agent was restarted before it began; nothing was done';
