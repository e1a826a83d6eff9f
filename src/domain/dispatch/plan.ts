import type { Epoch, RegistrationId } from '../link/model.js';
import {
  ANSWER_MS,
  type InstructionRow,
  type KeptRow,
  orderOf,
  RESULT_KEPT_MS,
  type StoredReply,
  UPDATE_AGENT,
} from './model.js';

/** The current stream of a node, as far as deliveries depend on it. */
export interface StreamView {
  readonly registration: RegistrationId;
  readonly epoch: Epoch;
  /** Id of the agent's journal; undefined for an agent that keeps none, which is never sent anything twice. */
  readonly journal: string | undefined;
  /** What was delivered on earlier streams than this is forgotten. */
  readonly forgottenBefore: Epoch;
  readonly canCancel: boolean;
  readonly canUpdate: boolean;
  /** Tags that were sent on this very stream, and those whose cancelling was. */
  readonly sent: ReadonlySet<string>;
  readonly cancelled: ReadonlySet<string>;
}

export interface NodePlan {
  /** Rows that end without a reply. */
  readonly settle: readonly Settlement[];
  /** To be sent, in this order. */
  readonly deliver: readonly KeptRow[];
  /** To be asked to stop. */
  readonly cancel: readonly KeptRow[];
}

export interface Settlement {
  readonly kept: KeptRow;
  readonly state: 'unknown' | 'expired' | 'cancelled';
  readonly reason: string;
}

export interface PlanOptions {
  /** Undefined: the node has none at this server. */
  readonly stream: StreamView | undefined;
  readonly now: number;
  readonly window: number;
  /** Whether new ones may be sent at present. */
  readonly mayDeliver: boolean;
}

/** What is to be done for one node with its unfinished rows. Done once, the same again plans nothing. */
export function planNode(open: readonly KeptRow[], { stream, now, window, mayDeliver }: PlanOptions): NodePlan {
  const settle: Settlement[] = [];
  const waiting: KeptRow[] = [];
  let unanswered = 0;
  for (const kept of [...open].sort(inOrder)) {
    const settlement = settlementOf(kept, stream, now);
    if (settlement !== undefined) settle.push(settlement);
    else if (stream === undefined) continue;
    else if (stream.sent.has(kept.row.tag)) unanswered += 1;
    else if (canBeSent(kept.row, stream, now)) waiting.push(kept);
  }
  const free = mayDeliver ? Math.max(0, window - unanswered) : 0;
  return { settle, deliver: waiting.slice(0, free), cancel: cancelsOf(open, stream) };
}

/** How a row ends without a reply, if it does. */
function settlementOf(kept: KeptRow, stream: StreamView | undefined, now: number): Settlement | undefined {
  const { row } = kept;
  if (row.state !== 'delivered') {
    if (now >= row.expiresAt) return { kept, state: 'expired', reason: 'it could not be sent in time' };
    if (stream === undefined) return undefined;
    if (stream.registration !== row.registration) return { kept, state: 'cancelled', reason: 'the node has registered again' };
    // An older agent would take it for an unknown instruction.
    const isBeyond = row.type === UPDATE_AGENT && !stream.canUpdate;
    return isBeyond ? { kept, state: 'cancelled', reason: 'this agent cannot update itself' } : undefined;
  }
  const unknown = (reason: string): Settlement => ({ kept, state: 'unknown', reason });
  if (stream !== undefined && stream.registration !== row.registration) return unknown('the node has registered again');
  if (stream !== undefined && isForgotten(row, stream)) return unknown('the node has lost its journal');
  if (now < dueAt(row)) return undefined;
  return row.journal === undefined ? unknown('this agent cannot deduplicate') : unknown('the node has not answered');
}

/** Delivered before this stream, under a journal that the agent no longer has (engine.md A12). */
function isForgotten(row: InstructionRow, stream: StreamView): boolean {
  if (row.journal === undefined || row.epoch === stream.epoch) return false;
  return row.journal !== stream.journal || (row.epoch ?? 0n) < stream.forgottenBefore;
}

/** Pending ones; delivered ones whose agent drops what it has seen; and those marked for this stream that were never sent on it. */
function canBeSent(row: InstructionRow, stream: StreamView, now: number): boolean {
  if (now >= row.expiresAt) return false;
  if (row.state !== 'delivered' || row.epoch === stream.epoch) return true;
  return row.journal !== undefined;
}

function cancelsOf(open: readonly KeptRow[], stream: StreamView | undefined): readonly KeptRow[] {
  if (stream?.canCancel !== true) return [];
  return open.filter(({ row }) => row.cancelAsked === true && stream.sent.has(row.tag) && !stream.cancelled.has(row.tag));
}

/** When something happens to a row by time alone, wall clock. */
export function dueAt(row: InstructionRow): number {
  if (row.state !== 'delivered') return row.expiresAt;
  const delivered = row.deliveredAt ?? row.issuedAt;
  if (isPrompt(row.type)) return Math.max(row.expiresAt, delivered) + row.answerMs;
  if (row.journal === undefined) return delivered + row.answerMs;
  // It may run until its deadline, begun in the last moment, and its result is kept for a day.
  return Math.max(row.expiresAt, delivered + ANSWER_MS) + row.answerMs + RESULT_KEPT_MS;
}

/** Its answer comes at once or never: no agent keeps it. */
function isPrompt(type: string): boolean {
  return type === 'VIP_ASSIGN' || type === 'VIP_RELEASE';
}

/** What a cancelling comes to: what was never sent is not sent; for the rest its agent is asked. */
export function cancelled(kept: KeptRow, now: number): InstructionRow {
  return kept.row.state === 'delivered'
    ? { ...kept.row, cancelAsked: true }
    : settled({ kept, state: 'cancelled', reason: 'cancelled before it was sent' }, now);
}

export function claimed(kept: KeptRow, epoch: Epoch): InstructionRow {
  return { ...kept.row, state: 'claimed', epoch, order: orderOf(kept) };
}

export function delivered(kept: KeptRow, { epoch, journal }: Pick<StreamView, 'epoch' | 'journal'>, now: number): InstructionRow {
  return { ...kept.row, state: 'delivered', epoch, journal, order: orderOf(kept), deliveredAt: now };
}

/** What it said is not kept any longer. */
export function settled({ kept, state, reason }: Settlement, now: number): InstructionRow {
  return { ...kept.row, state, reason, finishedAt: now, order: orderOf(kept), request: forgotten(kept.row) };
}

export function answered(kept: KeptRow, reply: StoredReply, now: number): InstructionRow {
  const { reason: _, ...row } = kept.row;
  return { ...row, state: 'done', reply, finishedAt: now, order: orderOf(kept), request: forgotten(row) };
}

function forgotten({ request }: InstructionRow): InstructionRow['request'] {
  return { ...request, pieces: 0 };
}

/**
 * What to do with a result of a node. `first`: it stands. `again`: there is one already. `stray`: nothing was sent that it could be of
 * (engine.md A14); also what registered before under the same name has no say.
 */
export function judgeReply(kept: KeptRow | undefined, registration: RegistrationId): 'first' | 'again' | 'stray' {
  if (kept === undefined || kept.row.registration !== registration) return 'stray';
  switch (kept.row.state) {
    case 'done':
      return 'again';
    case 'expired':
    case 'cancelled':
      return 'stray';
    default:
      return 'first';
  }
}

/** Why an unfinished instruction is not with its node yet, or what it waits for there. */
export function waitsFor(row: InstructionRow, node: { readonly connected: boolean; readonly held: string }): string {
  if (row.state === 'delivered')
    return row.cancelAsked === true ? 'the end of what is being cancelled' : 'the answer of the node';
  if (!node.connected) return 'the node to connect';
  return node.held === '' ? 'its turn' : node.held;
}

function inOrder(one: KeptRow, other: KeptRow): number {
  const [a, b] = [orderOf(one), orderOf(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}
