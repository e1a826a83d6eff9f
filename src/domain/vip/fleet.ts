import type { VipWord } from '../link/heartbeat.js';
import type { Aid, Nid } from '../link/model.js';
import type { NodeState } from '../link/presence.js';
import type { Generation, HolderAnswer } from './model.js';

/** What a control plane keeps of the virtual IP of an account: `vip/<aid>`, a VipRecord as JSON. */
export const vipPrefix = 'vip/';
export const vipKey = (aid: Aid) => `${vipPrefix}${aid}`;

/** The account of a key. */
export function accountOfKey(key: string): Aid {
  return key.slice(vipPrefix.length) as Aid;
}

/** VIP_ASSIGN that is not answered by then is taken back. */
export const ASSIGN_WAIT_MS = 5_000;
/** A node that does not say that it has released the address has lost it by then, whatever became of it. */
export const RELEASE_WAIT_MS = 30_000;
/** When every candidate was asked in vain, the next one waits so long for each that was, and a minute at most. */
const PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;
/** A server that has just begun may not have been told of the holder yet; one that nobody tells of by then is no more. */
export const UNHEARD_MS = 45_000;
/** How old the record may be by which a server lets a holder go on: 25 s after its heartbeat are over before the 30 s are. */
export const FRESH_MS = 5_000;

/**
 * `free`: nobody has it, `node` had it last. `assigning`: VIP_ASSIGN with this generation is under way to `node`. `held`: it has confirmed it.
 * `releasing`: VIP_RELEASE is under way, and nobody else is asked before it is answered, or 30 s are over.
 */
export const vipPhases = ['free', 'assigning', 'held', 'releasing'] as const;
export type VipPhase = (typeof vipPhases)[number];

export interface VipRecord {
  readonly generation: Generation;
  readonly phase: VipPhase;
  /** Empty while nobody has had it. */
  readonly node: Nid | '';
  /** Whom an operator wants to have it; empty when that is done, or nobody was named. */
  readonly wanted: Nid | '';
  /** Assignments in a row that nobody took. */
  readonly failures: number;
  /** Since when it is in this phase, wall clock. */
  readonly since: number;
}

export const NO_RECORD: VipRecord = { generation: 0n, phase: 'free', node: '', wanted: '', failures: 0, since: 0 };

export function encodeVipRecord({ generation, ...rest }: VipRecord): string {
  return JSON.stringify({ ...rest, generation: String(generation) });
}

/** Of what `encodeVipRecord` made. */
export function decodeVipRecord(text: string): VipRecord {
  const { generation, ...rest } = JSON.parse(text) as Omit<VipRecord, 'generation'> & { readonly generation: string };
  return { ...rest, generation: BigInt(generation) };
}

/** More changes than there can have been between a backup and its use. */
const RESTORED_GENERATIONS = 2n ** 32n;

/**
 * Of a store that was put back: since then others may have had it, under generations that nodes know. It is given to nobody before whoever
 * has it has lost it.
 */
export function restoredVip(record: VipRecord, now: number): VipRecord {
  const generation = record.generation + RESTORED_GENERATIONS;
  return { ...record, generation, phase: 'releasing', since: now };
}

/** What a server sees beside the record. */
export interface VipSight {
  /** How long it has seen the record as it is: never longer than it has been so. */
  readonly ageMs: number;
  /** What the instruction of this generation was answered with; undefined: nothing yet. */
  readonly answer: 'ok' | 'refused' | undefined;
  /** Nodes that may have it, sorted. */
  readonly candidates: readonly Nid[];
  /** Of `node`; undefined when nothing is known of it. */
  readonly nodeState: NodeState | undefined;
  readonly now: number;
}

/** The record that is to take the place of this one; undefined: nothing is to be done at present. */
export function planVip(record: VipRecord, sight: VipSight): VipRecord | undefined {
  switch (record.phase) {
    case 'free':
      return planFree(record, sight);
    case 'assigning':
      return planAssigning(record, sight);
    case 'held':
      return planHeld(record, sight);
    case 'releasing':
      return planReleasing(record, sight);
  }
}

function planFree(record: VipRecord, { candidates, ageMs, now }: VipSight): VipRecord | undefined {
  const { failures } = record;
  if (failures > 0 && failures >= candidates.length && ageMs < Math.min(LONGEST_PAUSE_MS, PAUSE_MS * failures)) return undefined;
  const node = nextCandidate(record, candidates);
  return node === undefined ? undefined : { ...record, phase: 'assigning', node, generation: record.generation + 1n, since: now };
}

/** Whom an operator has named; else whoever follows the last one, so that one who never answers is not asked alone. */
function nextCandidate({ node, wanted }: VipRecord, candidates: readonly Nid[]): Nid | undefined {
  if (wanted !== '' && candidates.includes(wanted)) return wanted;
  return candidates.find((one) => one > node) ?? candidates[0];
}

function planAssigning(record: VipRecord, { answer, ageMs, now }: VipSight): VipRecord | undefined {
  if (answer === 'ok') return { ...record, phase: 'held', wanted: forget(record), failures: 0, since: now };
  if (answer !== 'refused' && ageMs < ASSIGN_WAIT_MS) return undefined;
  return releasing({ ...record, wanted: forget(record), failures: record.failures + 1 }, now);
}

function planHeld(record: VipRecord, { candidates, nodeState, ageMs, now }: VipSight): VipRecord | undefined {
  const { node, wanted } = record;
  // Another server may have it by now, and have told it to go on: it is waited out like any other.
  if (nodeState === 'offline') return releasing(record, now);
  if (wanted !== '' && wanted !== node && candidates.includes(wanted)) return releasing(record, now);
  if (nodeState === undefined && ageMs < UNHEARD_MS) return undefined;
  const isFit = node !== '' && candidates.includes(node);
  // While nobody else could have it, the node that has it is as good as any. `unknown`: its server is gone, and it may be back at once.
  return isFit || nodeState === 'unknown' || candidates.length === 0 ? undefined : releasing(record, now);
}

function planReleasing(record: VipRecord, { answer, ageMs, now }: VipSight): VipRecord | undefined {
  const isGone = answer === 'ok' || ageMs >= RELEASE_WAIT_MS;
  return isGone ? { ...record, phase: 'free', since: now } : undefined;
}

function releasing(record: VipRecord, now: number): VipRecord {
  return { ...record, phase: 'releasing', generation: record.generation + 1n, since: now };
}

/** A wish is over when its node has the address, and when it did not take it: the others come next. */
function forget({ node, wanted }: VipRecord): VipRecord['wanted'] {
  return wanted === node ? '' : wanted;
}

/** What a node that asks is told. */
export function holderAnswerFor({ phase, node, generation }: VipRecord, nid: Nid): HolderAnswer {
  return { isHolder: node === nid && isGiven(phase), generation };
}

/** What a heartbeat is answered with, of a record that was read `ageMs` ago; undefined: it could not be read yet. */
export function vipWordFor(record: VipRecord, nid: Nid, ageMs: number | undefined): VipWord {
  if (ageMs === undefined || ageMs > FRESH_MS) return 'unknown';
  return record.node === nid && isGiven(record.phase) ? 'holder' : 'other';
}

function isGiven(phase: VipPhase): boolean {
  return phase === 'assigning' || phase === 'held';
}
