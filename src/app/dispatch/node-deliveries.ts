import {
  encodeRow,
  type InstructionRow,
  instructionKey,
  type KeptRow,
  requestPrefix,
  WINDOW,
} from '../../domain/dispatch/model.js';
import { claimed, delivered, type NodePlan, planNode, type StreamView, settled } from '../../domain/dispatch/plan.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid, ServerMessage } from '../../domain/link/model.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { Condition, ControlStore, Write } from '../../ports/store/control-store.js';
import type { NodeSession } from '../link/node-session.js';
import { type InstructionBodies, removals } from './instruction-bodies.js';
import type { InstructionBook } from './instruction-book.js';

/** Rows that one commit takes: each has a condition, its own write and those that remove what it said. */
const ROWS_PER_COMMIT = 5;

export interface DeliveryParts {
  readonly store: ControlStore;
  readonly book: InstructionBook;
  readonly bodies: InstructionBodies;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly newId: () => string;
}

/** `json` is undefined where the store has lost it. */
interface Request {
  readonly kept: KeptRow;
  readonly json: string | undefined;
}

const UNREADABLE = { state: 'cancelled', reason: 'what it says cannot be read in the store' } as const;

/** What was sent on one stream. */
export interface Sent {
  readonly tags: Set<string>;
  readonly cancelled: Set<string>;
  /** Of the CANCELs themselves, whose answers say nothing. */
  readonly cancelTags: Set<string>;
}

export interface CurrentStream {
  readonly session: NodeSession;
  readonly sent: Sent;
}

/** Brings the unfinished instructions of one node forward, as far as they go at present. One run at a time for a node. */
export class NodeDeliveries {
  readonly #parts: DeliveryParts;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
  }

  /**
   * Whether anything was done, so that another run is due.
   * @throws AgentError `store.*`; what was not done is done by the next run
   */
  async run(nid: Nid, current: CurrentStream | undefined, held: boolean, signal: AbortSignal): Promise<boolean> {
    const plan = this.#plan(nid, current, held);
    await this.#settle(plan, signal);
    if (current !== undefined) {
      await this.#cancel(current, plan.cancel);
      await this.#deliver(current, plan.deliver, signal);
    }
    return plan.settle.length > 0 || plan.deliver.length > 0;
  }

  #plan(nid: Nid, current: CurrentStream | undefined, held: boolean): NodePlan {
    const stream = current === undefined ? undefined : viewOf(current);
    const mayDeliver = !held && current !== undefined && current.session.holdMs() === 0;
    return planNode(this.#parts.book.open(nid), { stream, now: this.#parts.clock.now(), window: WINDOW, mayDeliver });
  }

  async #settle({ settle }: NodePlan, signal: AbortSignal): Promise<void> {
    const now = this.#parts.clock.now();
    for (let start = 0; start < settle.length; start += ROWS_PER_COMMIT) {
      const part = settle.slice(start, start + ROWS_PER_COMMIT);
      const rows = part.map((settlement) => ({ kept: settlement.kept, row: settled(settlement, now) }));
      await this.#write([], rows, signal);
    }
  }

  async #cancel({ session, sent }: CurrentStream, rows: readonly KeptRow[]): Promise<void> {
    for (const { row } of rows) {
      const tag = this.#parts.newId();
      sent.cancelled.add(row.tag);
      sent.cancelTags.add(tag);
      await session.send({ type: 'CANCEL', tag, jsonB64: base64(JSON.stringify({ tag: row.tag })), epoch: session.epoch });
    }
  }

  async #deliver(current: CurrentStream, rows: readonly KeptRow[], signal: AbortSignal): Promise<void> {
    if (rows.length === 0) return;
    const { session } = current;
    const claims = rows.filter(({ row }) => row.state !== 'delivered' && row.epoch !== session.epoch);
    if (claims.length > 0) {
      // Its rows are told by the book, and delivered by the next run.
      const marks = claims.map((kept) => ({ kept, row: claimed(kept, session.epoch) }));
      const version = await this.#write([session.fence], marks, signal);
      if (version === undefined) await this.#checkFence(session, signal);
      return;
    }
    const requests = await Promise.all(rows.map(async (kept) => ({ kept, json: await this.#request(kept, signal) })));
    await this.#markAndSend(current, requests, signal);
  }

  /** Undefined: what is in the store cannot be read, now or later. @throws AgentError `store.unavailable` */
  async #request({ row }: KeptRow, signal: AbortSignal): Promise<string | undefined> {
    const { bodies, logger } = this.#parts;
    try {
      return await bodies.read(requestPrefix(row.nid, row.tag), row.request, { signal });
    } catch (error) {
      if (!(error instanceof AgentError) || error.kind === 'unavailable') throw error;
      logger.error('what an instruction says cannot be read', { nid: row.nid, tag: row.tag, error });
      return undefined;
    }
  }

  /** Nothing is sent that the store does not say is delivered on this very epoch (engine.md B2). */
  async #markAndSend(current: CurrentStream, requests: readonly Request[], signal: AbortSignal): Promise<void> {
    const { session } = current;
    const now = this.#parts.clock.now();
    const stream = viewOf(current);
    const rows = requests.map(({ kept, json }) => ({
      kept,
      row: json === undefined ? settled({ kept, ...UNREADABLE }, now) : delivered(kept, stream, now),
    }));
    const version = await this.#write([session.fence], rows, signal);
    if (version === undefined) await this.#checkFence(session, signal);
    else await this.#sendAll(current, requests, signal);
  }

  async #sendAll({ session, sent }: CurrentStream, requests: readonly Request[], signal: AbortSignal): Promise<void> {
    const { clock, book } = this.#parts;
    for (const { kept, json } of requests) {
      const { nid, tag, expiresAt } = kept.row;
      if (json === undefined) continue;
      const expiresInMs = expiresAt - clock.now();
      const marked = book.get(nid, tag);
      if (expiresInMs > 0) {
        sent.tags.add(tag);
        if (!(await session.send(messageOf(kept.row, json, session, expiresInMs)))) return;
      } else if (marked?.row.state === 'delivered') {
        const settlement = { kept: marked, state: 'expired', reason: 'it could not be sent in time' } as const;
        await this.#write([], [{ kept: marked, row: settled(settlement, clock.now()) }], signal);
      }
    }
  }

  /** Undefined: one of them has changed, or another stream is the current one. Resolves when the book knows. */
  async #write(
    fence: readonly Condition[],
    rows: readonly { readonly kept: KeptRow; readonly row: InstructionRow }[],
    signal: AbortSignal,
  ): Promise<bigint | undefined> {
    if (rows.length === 0) return 0n;
    const { store, book } = this.#parts;
    const conditions = rows.map(({ kept }) => ({ key: instructionKey(kept.row.nid, kept.row.tag), version: kept.version }));
    const version = await store.commit(
      [...fence, ...conditions],
      rows.flatMap(({ kept, row }) => writesOf(kept, row)),
      { signal },
    );
    await book.reached(version ?? (await this.#newest(conditions, signal)), { signal });
    return version;
  }

  /** A row that has changed is seen before it is tried again: otherwise the same would be tried at once, and again. */
  async #newest(conditions: readonly Condition[], signal: AbortSignal): Promise<bigint> {
    const kept = await Promise.all(conditions.map(({ key }) => this.#parts.store.get(key, { signal })));
    return kept.reduce((newest, value) => (value !== undefined && value.version > newest ? value.version : newest), 0n);
  }

  async #checkFence(session: NodeSession, signal: AbortSignal): Promise<void> {
    const { key, version } = session.fence;
    const kept = await this.#parts.store.get(key, { signal });
    if (kept?.version !== version)
      session.end({ status: 'superseded', message: 'SUPERSEDED epoch: another stream is the current one' });
  }
}

/** Of a row that has become `row`: what it said goes when it is finished. */
export function writesOf({ row: former }: KeptRow, row: InstructionRow): readonly Write[] {
  const { nid, tag, request } = former;
  const gone = row.request.pieces === 0 ? removals(requestPrefix(nid, tag), request) : [];
  return [{ key: instructionKey(nid, tag), value: encodeRow(row) }, ...gone];
}

export function viewOf({ session, sent }: CurrentStream): StreamView {
  const { identity, epoch, agent, forgottenBefore } = session;
  const can = agent?.capabilities ?? new Set();
  return {
    ...{ registration: identity.registration, epoch, forgottenBefore },
    journal: can.has('journal') ? agent?.journal.id : undefined,
    canCancel: can.has('cancel'),
    canUpdate: can.has('update-agent'),
    sent: sent.tags,
    cancelled: sent.cancelled,
  };
}

function messageOf(
  { type, tag }: InstructionRow,
  json: string,
  { agent, epoch }: NodeSession,
  expiresInMs: number,
): ServerMessage {
  const message = { type, tag, jsonB64: base64(json) };
  return agent?.capabilities.has('journal') === true ? { ...message, epoch, expiresInMs } : message;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
