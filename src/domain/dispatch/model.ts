import type { Tag } from '../instruction/model.js';
import type { Epoch, Nid, RegistrationId } from '../link/model.js';

/**
 * The way of an instruction on the control plane's side (engine.md A14). `claimed`: a server has taken it in hand for one stream.
 * `delivered`: it may be with the node. `unknown`: nobody will learn what became of it, unless its result comes after all.
 */
export const instructionStates = ['pending', 'claimed', 'delivered', 'done', 'unknown', 'expired', 'cancelled'] as const;
export type InstructionState = (typeof instructionStates)[number];

/** Text that is kept sealed, in pieces, beside its row. */
export interface BodyFacts {
  readonly pieces: number;
  /** Of the text as UTF-8. */
  readonly bytes: number;
  /** SHA-256 in hex of the text. */
  readonly digest: string;
}

export interface StoredReply {
  readonly type: string;
  readonly body: BodyFacts;
}

/** One instruction, without what it says. Times are of the wall clock, milliseconds. */
export interface InstructionRow {
  readonly nid: Nid;
  readonly registration: RegistrationId;
  readonly tag: Tag;
  readonly type: string;
  /** JSON text. Nothing once it is finished. */
  readonly request: BodyFacts;
  readonly state: InstructionState;
  readonly issuedAt: number;
  /** It is never sent after this. */
  readonly expiresAt: number;
  /** How long an answer takes at most when the agent keeps no journal, milliseconds. */
  readonly answerMs: number;
  /** Who sent it. */
  readonly by: string;
  /** Of the commit that issued it; undefined while that is the row's own version. Instructions of a node go in this order. */
  readonly order?: bigint | undefined;
  /** Of the stream that it was claimed for or delivered on. */
  readonly epoch?: Epoch | undefined;
  /** Of the latest delivery. */
  readonly deliveredAt?: number | undefined;
  /** Id of the journal of the agent that it was delivered to; undefined for one that keeps none. */
  readonly journal?: string | undefined;
  readonly cancelAsked?: boolean | undefined;
  readonly finishedAt?: number | undefined;
  /** Why it ended without a reply. */
  readonly reason?: string | undefined;
  readonly reply?: StoredReply | undefined;
}

/** A row as the store has it. */
export interface KeptRow {
  readonly row: InstructionRow;
  readonly version: bigint;
}

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** Beyond the base protocol: sent only to agents that say that they know it. */
export const UPDATE_AGENT = 'UPDATE_AGENT';

/** Of the JSON text of a request. */
export const MAX_REQUEST_BYTES = 1024 * 1024;
/** A result up to this is written in the commit that finishes its row; a larger one in parts before it. */
export const INLINE_BYTES = 512 * 1024;
/** Unanswered instructions that a node is given; the rest waits here (engine.md D3). */
export const WINDOW = 32;
export const MAX_OPEN_PER_NODE = 1_000;
export const MAX_OPEN = 100_000;
export const DEFAULT_EXPIRY_MS = HOUR;
export const MAX_EXPIRY_MS = 7 * 24 * HOUR;
/** A waiter of an older server lives so long, and its agents know. */
export const ANSWER_MS = 30 * SECOND;
/** For the way there and back of something that has a time-out of its own. */
export const ANSWER_MARGIN_MS = 30 * SECOND;
/** How long a result that is not confirmed is kept by an agent with a journal (engine.md A9). */
export const RESULT_KEPT_MS = 24 * HOUR;

export const instructionPrefix = 'inst/';
/** Apart from the rows, so that whoever watches those is not sent every payload. */
export const bodyPrefix = 'inst-body/';

/** A tag may have any printable character; a segment of a key has no `/`. */
export function instructionKey(nid: Nid, tag: Tag): string {
  return `${instructionPrefix}${nid}/${segment(tag)}`;
}

export function requestPrefix(nid: Nid, tag: Tag): string {
  return `${bodyPrefix}${nid}/${segment(tag)}/p/`;
}

export function replyPrefix(nid: Nid, tag: Tag): string {
  return `${bodyPrefix}${nid}/${segment(tag)}/r/`;
}

function segment(tag: Tag): string {
  return tag.replaceAll('%', '%25').replaceAll('/', '%2F');
}

export function isFinished({ state }: InstructionRow): boolean {
  return state === 'done' || state === 'unknown' || state === 'expired' || state === 'cancelled';
}

export function orderOf({ row, version }: KeptRow): bigint {
  return row.order ?? version;
}

export function encodeRow({ order, epoch, ...rest }: InstructionRow): string {
  return JSON.stringify({ ...rest, order: order?.toString(), epoch: epoch?.toString() });
}

/** Of what `encodeRow` made. */
export function decodeRow(text: string): InstructionRow {
  const { order, epoch, ...rest } = JSON.parse(text) as Stored;
  return {
    ...rest,
    ...(order === undefined ? {} : { order: BigInt(order) }),
    ...(epoch === undefined ? {} : { epoch: BigInt(epoch) as Epoch }),
  };
}

type Stored = Omit<InstructionRow, 'order' | 'epoch'> & { readonly order?: string; readonly epoch?: string };
