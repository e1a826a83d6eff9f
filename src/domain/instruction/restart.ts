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

/** Now, on every clock that an expiry may stand on; milliseconds. */
export interface RestartTime {
  readonly wall: number;
  /** Boot id of the kernel, and its boot-time clock. */
  readonly boot: string;
  readonly bootTime: number;
}

/**
 * Whether its time is over (engine.md A11): counted on the boot-time clock as long as the machine has not started anew, whatever the wall
 * clock was set to. After that only the wall clock tells, and one that has gone back tells nothing: then it is taken to be over.
 */
export function isExpired({ receivedAt, expiresAt, expiresAtBoot, boot }: Row, now: RestartTime): boolean {
  if (expiresAt === undefined) return false;
  if (expiresAtBoot !== undefined && boot === now.boot) return now.bootTime >= expiresAtBoot;
  return now.wall >= expiresAt || now.wall < receivedAt;
}

/** What becomes of a journal's row after the death of the process that wrote it (engine.md A5 to A7). */
export function afterRestart(row: Row, evidence: TaskEvidence, hasPayload: boolean, now: RestartTime): RestartDecision {
  if (isFinished(row)) return 'offer';
  if (row.state === 'received') return 'not_started';
  if (evidence === 'running' || evidence === 'exited') return 'adopt';
  // A probe looks at what the first attempt has done before it acts.
  const converges = row.repeat === 'repeat' || row.repeat === 'probe';
  const mayRepeat = converges && hasPayload && row.attempt < MOST_ATTEMPTS && !isExpired(row, now);
  if (mayRepeat) return 'rerun';
  return evidence === 'not_started' && row.attempt < MOST_ATTEMPTS ? 'not_started' : 'interrupted';
}

export function interruptedText({ attempt, step }: Row): string {
  const which = attempt > 1 ? ` (attempt ${attempt})` : '';
  const reached = step === undefined ? 'it was started' : `it had reached: ${step}`;
  return `INTERRUPTED${which}: ${reached}; it may have taken effect, and no repeat of this tag runs`;
}

export const NOT_STARTED_TEXT = 'NOT_STARTED: the agent was restarted before it began; nothing was done';
