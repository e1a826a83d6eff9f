import type { Nid, RegistrationId } from './model.js';
import type { StreamAgent } from './stream-record.js';

/** One at a time for a node; gone when it is judged. */
export const contestPrefix = 'contest/';
export const contestKey = (nid: Nid) => `${contestPrefix}${nid}`;

/**
 * `beats`: the stream that is there has said something since the newcomer came. `gone`: it is over. Undefined: not known yet, and after
 * the time of `CLONE_MS` as good as gone.
 */
export type ContestAnswer = 'beats' | 'gone';

/**
 * A stream that may be of another machine than the node's current one, which another replica has: that replica is asked whether its
 * stream goes on beating (engine.md B4).
 */
export interface Contest {
  readonly nid: Nid;
  readonly registration: RegistrationId;
  /** The replica that is asked. */
  readonly asked: string;
  /** Drawn for each question. */
  readonly id: string;
  readonly newcomer: { readonly agent: StreamAgent; readonly address: string };
  readonly answer: ContestAnswer | undefined;
}

export function encodeContest(contest: Contest): string {
  return JSON.stringify(contest);
}

/** Of what `encodeContest` made. */
export function decodeContest(text: string): Contest {
  const stored = JSON.parse(text) as Contest;
  return { ...stored, answer: stored.answer };
}
