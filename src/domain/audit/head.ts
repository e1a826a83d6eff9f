import type { AuditHead } from './model.js';

/** What a node's newest head says of its audit log, compared with the highest that was kept. */
export interface HeadJudgement {
  /** To be kept from now on. */
  readonly kept: AuditHead;
  /** `lower`: lines are gone. `different`: another line has this number. Either is an event. */
  readonly verdict: 'follows' | 'lower' | 'different';
}

/** Of a node that no longer has any line, `reported` is undefined. */
export function judgeHead(kept: AuditHead, reported: AuditHead | undefined): HeadJudgement {
  if (reported === undefined || reported.sequence < kept.sequence) return { kept, verdict: 'lower' };
  if (reported.sequence > kept.sequence) return { kept: reported, verdict: 'follows' };
  return { kept, verdict: reported.digest === kept.digest ? 'follows' : 'different' };
}

/** `12:<digest>`, as people hand it on. */
export function formatHead({ sequence, digest }: AuditHead): string {
  return `${sequence}:${digest}`;
}

/** Of what `formatHead` wrote; undefined when `text` is not that. */
export function parseHead(text: string): AuditHead | undefined {
  const match = /^([1-9]\d{0,18}):([0-9a-f]{64})$/.exec(text);
  return match === null ? undefined : { sequence: BigInt(match[1] ?? ''), digest: match[2] ?? '' };
}
