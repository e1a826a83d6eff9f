import type { StreamAgent } from './stream-record.js';

/** How long a newcomer waits for a sign of life of the stream that is there: more than one beat's interval (engine.md B4). */
export const CLONE_MS = 7_000;
/** How long the one of two machines that is turned away stays away. */
export const DUPLICATE_RETRY_MS = 300_000;

/** Who is on a stream, as far as it has said. */
export interface StreamParty {
  /** Undefined for an older agent. */
  readonly agent: StreamAgent | undefined;
  /** `address:port` that it calls from. */
  readonly address: string;
}

/**
 * `takes_over`: it is the current stream from now on. `is_old`: the same process has a newer one. `waits`: it may be another machine with
 * the same certificate, which shows when the one that is there goes on beating.
 */
export type Arrival = 'takes_over' | 'is_old' | 'waits';

/** What becomes of a stream of a node that has one already (engine.md B4). */
export function judgeArrival(present: StreamParty | undefined, newcomer: StreamParty): Arrival {
  const [was, is] = [present?.agent, newcomer.agent];
  if (was === undefined || is === undefined) return 'takes_over';
  if (was.instance === is.instance) return is.session > was.session ? 'takes_over' : 'is_old';
  return was.boot === is.boot && was.hardware === is.hardware ? 'takes_over' : 'waits';
}

/** Which of two machines stays, when both are alive: the one whose hardware was registered; if that says nothing, the first. */
export function judgeClone(registered: string | undefined, present: StreamParty, newcomer: StreamParty): 'present' | 'newcomer' {
  if (registered === undefined || present.agent?.hardware === registered) return 'present';
  return newcomer.agent?.hardware === registered ? 'newcomer' : 'present';
}

/** Older agents are only seen to change places: more changes than this in a minute, from two addresses, are two machines. */
const MOST_CHANGES = 3;
const CHANGES_MS = 60_000;
/** One of them must have been alone for so long before anything is delivered. */
export const ALONE_MS = 15_000;

/** The newest changes of the stream of one node, oldest first. */
export type StreamChanges = readonly { readonly at: number; readonly host: string }[];

/** With one more change, at `now` on a clock that never goes back. */
export function addChange(changes: StreamChanges, address: string, now: number): StreamChanges {
  const host = address.slice(0, Math.max(0, address.lastIndexOf(':')));
  return [...recentChanges(changes, now), { at: now, host }];
}

export function recentChanges(changes: StreamChanges, now: number): StreamChanges {
  return changes.filter(({ at }) => now - at < CHANGES_MS);
}

export function isContested(changes: StreamChanges): boolean {
  return changes.length > MOST_CHANGES && new Set(changes.map(({ host }) => host)).size > 1;
}

/** For how long nothing is delivered to a node, milliseconds from `now`. */
export function holdMs(changes: StreamChanges, now: number): number {
  const newest = changes.at(-1);
  return newest === undefined || !isContested(changes) ? 0 : Math.max(0, newest.at + ALONE_MS - now);
}
