import type { Outcome, Row } from './row.js';
import { isFinished } from './row.js';

/** What becomes of a tag that the journal knows (engine.md A9, A10). */
export type Replay =
  /** It runs or waits: its one answer is this one's as well. */
  | { readonly kind: 'attach' }
  /** Its reply is sent again. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'refuse'; readonly text: string; readonly rule: string };

/**
 * @param hasReply whether its reply is still kept; an instruction that is not answered at all has one in this sense
 * @param timeText of a wall clock time, for people
 */
export function replay(known: Row, digest: string, hasReply: boolean, timeText: (ms: number) => string): Replay {
  if (known.digest !== digest) {
    const text = `TAG_REUSED: this tag was used for another instruction (${known.type}) before; nothing was done`;
    return { kind: 'refuse', rule: 'TAG_REUSED', text };
  }
  if (!isFinished(known)) return { kind: 'attach' };
  if (hasReply) return { kind: 'answer' };
  return {
    kind: 'refuse',
    rule: 'RESULT_EXPIRED',
    text: resultExpired(timeText(known.finishedAt ?? known.receivedAt), known.outcome),
  };
}

function resultExpired(at: string, outcome: Outcome | undefined): string {
  return `RESULT_EXPIRED: ran at ${at}, outcome ${outcome ?? 'unknown'}; its reply is no longer kept, and nothing was done`;
}
