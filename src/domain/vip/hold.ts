import { GAP_MS, type Generation, HOLD_MS, type HolderAnswer, type OnDisconnect, SILENCE_MS } from './model.js';

/** A node's part in the virtual IP. Times are of the boot-time clock, milliseconds. */
export interface VipHold {
  /** Of the last change that was applied. */
  readonly generation: Generation;
  /** Until when this node has the address; undefined: it has not. */
  readonly until: number | undefined;
  /** When the control plane last said that this node has it. */
  readonly heardAt: number;
  /** Whether it was said on the stream that is open now: only then do heartbeats prolong it. */
  readonly isTrusted: boolean;
}

/** Why a node gives the address up by itself. */
export type DropReason = 'gap' | 'silence' | 'conflict' | 'expired';

/** A node that knows nothing has nothing. */
export const NO_HOLD: VipHold = { generation: 0n, until: undefined, heardAt: 0, isTrusted: false };

/** Another server, the same server after a break: what it was said before is only an old promise. */
export function reconnected(hold: VipHold): VipHold {
  return { ...hold, isTrusted: false };
}

/** Undefined: it comes too late, and changes nothing. */
export function assigned(hold: VipHold, generation: Generation, receivedAt: number): VipHold | undefined {
  return generation > hold.generation ? held(generation, receivedAt, receivedAt) : undefined;
}

/** As `assigned`. */
export function released(hold: VipHold, generation: Generation): VipHold | undefined {
  return generation > hold.generation ? { ...dropped(hold), generation } : undefined;
}

/** The answer to what was asked at `askedAt`; its generation holds, also when it is lower: the control plane may have been restored. */
export function confirmed(hold: VipHold, { isHolder, generation }: HolderAnswer, askedAt: number, now: number): VipHold {
  if (!isHolder) return { ...dropped(hold), generation };
  const fresh = held(generation, askedAt, now);
  return { ...fresh, until: Math.max(hold.until ?? 0, fresh.until ?? 0) };
}

/** A heartbeat of `sentAt` was answered. What has run out is not had back by it. */
export function prolonged(hold: VipHold, sentAt: number, now: number): VipHold {
  if (hold.until === undefined || !hold.isTrusted || now >= hold.until) return hold;
  return { ...hold, until: Math.max(hold.until, sentAt + HOLD_MS), heardAt: now };
}

export function dropped(hold: VipHold): VipHold {
  return { ...hold, until: undefined, isTrusted: false };
}

export interface Look {
  readonly now: number;
  /** When it was looked at before. */
  readonly lastLookAt: number;
  readonly onDisconnect: OnDisconnect;
}

/** What becomes of it by time alone, and why it is given up. */
export function looked(hold: VipHold, { now, lastLookAt, onDisconnect }: Look): { hold: VipHold; because?: DropReason } {
  if (hold.until === undefined) return { hold };
  if (now - lastLookAt > GAP_MS) return { hold: dropped(hold), because: 'gap' };
  if (now >= hold.until) return { hold: dropped(hold), because: 'expired' };
  if (!isAlone(hold, now)) return { hold };
  // In the kernel it stands for 25 s all the same: a process that is killed or stopped keeps nothing.
  if (onDisconnect === 'keep') return { hold: { ...hold, until: now + HOLD_MS } };
  return { hold: dropped(hold), because: 'silence' };
}

/** It is held, and for long nobody has said that it may be. */
export function isAlone({ until, heardAt }: VipHold, now: number): boolean {
  return until !== undefined && now - heardAt >= SILENCE_MS;
}

function held(generation: Generation, since: number, now: number): VipHold {
  return { generation, until: since + HOLD_MS, heardAt: now, isTrusted: true };
}
