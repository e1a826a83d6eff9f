import {
  encodeRow,
  type InstructionRow,
  instructionKey,
  isFinished,
  type KeptRow,
  MAX_OPEN,
  MAX_OPEN_PER_NODE,
  MAX_REQUEST_BYTES,
  orderOf,
  replyPrefix,
  requestPrefix,
} from '../../domain/dispatch/model.js';
import { cancelled, waitsFor } from '../../domain/dispatch/plan.js';
import { answerMsOf, checkExpiry, checkPayload, checkType } from '../../domain/dispatch/request.js';
import { tag as asTag, type Reply, type Tag } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { InstructionFilter, InstructionStatus, Instructions, SendCall } from '../../ports/driving/fleet.js';
import type { RegisteredNode, Registrations } from '../../ports/driving/registrations.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { InstructionBodies } from './instruction-bodies.js';
import type { InstructionBook } from './instruction-book.js';
import { writesOf } from './node-deliveries.js';

export interface DispatchServiceParts {
  readonly store: ControlStore;
  readonly book: InstructionBook;
  readonly bodies: InstructionBodies;
  readonly registrations: Registrations;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly sessions: Pick<NodeSessions, 'get'>;
  /** As the dispatcher's. */
  readonly heldBack: (nid: Nid) => string;
}

/** Sends, shows and cancels instructions. Their delivery is the dispatcher's. */
export class DispatchService implements Instructions {
  readonly #parts: DispatchServiceParts;

  constructor(parts: DispatchServiceParts) {
    this.#parts = parts;
  }

  async send(call: SendCall, options: CallOptions): Promise<InstructionStatus> {
    const { registrations, book, newId } = this.#parts;
    const fields = checkSend(call);
    const node = await registrations.get(call.nid, options);
    if (node === undefined) throw unknownNode(call.nid);
    await book.reached(0n, options);
    const tag = call.tag ?? asTag(newId());
    if (tag === undefined) throw new AgentError('dispatch.invalid', { problem: 'no tag could be made' });
    const row = this.#rowOf(call, { tag, node, answerMs: answerMsOf(call.type, fields) });
    return this.#status(await this.#issue(row, call.json === '' ? '{}' : call.json, options));
  }

  async list(filter: InstructionFilter, options: CallOptions): Promise<readonly InstructionStatus[]> {
    await this.#parts.book.reached(0n, options);
    return this.#matching(filter).map((kept) => this.#status(kept));
  }

  async get(nid: Nid, tag: Tag, options: CallOptions) {
    await this.#parts.book.reached(0n, options);
    const kept = this.#required(nid, tag);
    return { status: this.#status(kept), reply: await this.#reply(kept, options) };
  }

  async *watch(filter: InstructionFilter, options: CallOptions): AsyncGenerator<InstructionStatus, void, undefined> {
    const { book } = this.#parts;
    const { signal } = options;
    await book.reached(0n, options).catch(() => {});
    // One entry an instruction: a slow reader gets the newest state of each, and holds up nobody.
    const waiting = new Map<string, KeptRow>();
    let wake = () => {};
    const unsubscribe = book.onChange((nid, tag, kept) => {
      if (kept === undefined || !matches(kept, filter)) return;
      waiting.set(instructionKey(nid, tag), kept);
      wake();
    });
    const onAbort = () => wake();
    signal.addEventListener('abort', onAbort);
    try {
      for (const kept of this.#matching(filter)) waiting.set(instructionKey(kept.row.nid, kept.row.tag), kept);
      while (!signal.aborted) {
        for (const [key, kept] of waiting) {
          waiting.delete(key);
          yield this.#status(kept);
        }
        if (waiting.size > 0 || signal.aborted) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      unsubscribe();
      signal.removeEventListener('abort', onAbort);
    }
  }

  async cancel(nid: Nid, tag: Tag, options: CallOptions): Promise<InstructionStatus> {
    const { store, book, clock } = this.#parts;
    await book.reached(0n, options);
    for (;;) {
      const kept = this.#required(nid, tag);
      if (isFinished(kept.row) || kept.row.cancelAsked === true) return this.#status(kept);
      this.#checkCancellable(kept);
      const row = cancelled(kept, clock.now());
      const key = instructionKey(nid, tag);
      const version = await store.commit([{ key, version: kept.version }], writesOf(kept, row), options);
      await book.reached(version ?? (await this.#newest(key, options)), options);
    }
  }

  /** One that is not there now may be another agent when it comes back. */
  #checkCancellable({ row }: KeptRow): void {
    const session = this.#parts.sessions.get(row.nid);
    if (row.state !== 'delivered' || session === undefined || session.agent?.capabilities.has('cancel') === true) return;
    throw new AgentError('dispatch.not_cancellable', {
      problem: `${row.tag} is with node ${row.nid}, whose agent cannot cancel`,
    });
  }

  #rowOf(
    { nid, type, json, expiresMs, by }: SendCall,
    more: { tag: Tag; node: RegisteredNode; answerMs: number },
  ): InstructionRow {
    const { clock, bodies } = this.#parts;
    const now = clock.now();
    return {
      ...{ nid, type, by, tag: more.tag, registration: more.node.registration, answerMs: more.answerMs },
      request: bodies.factsOf(json === '' ? '{}' : json),
      state: 'pending',
      issuedAt: now,
      expiresAt: now + expiresMs,
    };
  }

  async #issue(row: InstructionRow, json: string, options: CallOptions): Promise<KeptRow> {
    const { book, bodies } = this.#parts;
    const key = instructionKey(row.nid, row.tag);
    const present = book.get(row.nid, row.tag);
    if (present !== undefined) return sameOrRefused(present, row);
    this.#checkRoom(row.nid);
    const last = await bodies.write(requestPrefix(row.nid, row.tag), json, options);
    const version = await this.#commitOnce(key, [...last, { key, value: encodeRow(row) }], options);
    if (version !== undefined) {
      await book.reached(version, options);
      return { row, version };
    }
    await book.reached(await this.#newest(key, options), options);
    return sameOrRefused(this.#required(row.nid, row.tag), row);
  }

  /** Undefined: the row is there, by this call or another. */
  async #commitOnce(
    key: string,
    writes: Parameters<ControlStore['commit']>[1],
    options: CallOptions,
  ): Promise<bigint | undefined> {
    const { store } = this.#parts;
    try {
      return await store.commit([{ key, version: 0n }], writes, options);
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'store.outcome_unknown') throw error;
      if ((await store.get(key, options)) === undefined) throw error;
      return undefined;
    }
  }

  #checkRoom(nid: Nid): void {
    const { book } = this.#parts;
    if (book.openCount(nid) >= MAX_OPEN_PER_NODE)
      throw new AgentError('dispatch.too_many', { problem: `${book.openCount(nid)} instructions of node ${nid} are unfinished` });
    if (book.openCount() >= MAX_OPEN)
      throw new AgentError('dispatch.too_many', { problem: `${book.openCount()} instructions are unfinished` });
  }

  async #newest(key: string, options: CallOptions): Promise<bigint> {
    return (await this.#parts.store.get(key, options))?.version ?? 0n;
  }

  #required(nid: Nid, tag: Tag): KeptRow {
    const kept = this.#parts.book.get(nid, tag);
    if (kept === undefined) throw new AgentError('dispatch.not_found', { problem: `node ${nid} has no instruction ${tag}` });
    return kept;
  }

  async #reply({ row }: KeptRow, options: CallOptions): Promise<Reply | undefined> {
    if (row.reply === undefined) return undefined;
    const jsonB64 = await this.#parts.bodies.read(replyPrefix(row.nid, row.tag), row.reply.body, options);
    if (jsonB64 !== undefined) return { type: row.reply.type, jsonB64 };
    throw new AgentError('dispatch.not_found', { problem: `the result of ${row.tag} is not whole in the store` });
  }

  #matching(filter: InstructionFilter): readonly KeptRow[] {
    return [...this.#parts.book.rows()].filter((kept) => matches(kept, filter)).sort(inOrder);
  }

  #status({ row }: KeptRow): InstructionStatus {
    const { nid, tag, type, state, by, issuedAt, expiresAt, deliveredAt, finishedAt, reason = '', reply } = row;
    const { sessions, heldBack } = this.#parts;
    const waits = isFinished(row) ? '' : waitsFor(row, { connected: sessions.get(nid) !== undefined, held: heldBack(nid) });
    const replied = { replyType: reply?.type, replyBytes: reply?.body.bytes ?? 0 };
    return { nid, tag, type, state, by, issuedAt, expiresAt, deliveredAt, finishedAt, waitsFor: waits, reason, ...replied };
  }
}

/** What the payload says. @throws AgentError `dispatch.invalid`, `dispatch.too_large` */
function checkSend({ type, json, expiresMs }: SendCall): Readonly<Record<string, unknown>> {
  checkType(type);
  checkExpiry(expiresMs);
  const bytes = Buffer.byteLength(json);
  if (bytes > MAX_REQUEST_BYTES) throw new AgentError('dispatch.too_large', { problem: `the payload has ${bytes} bytes` });
  return checkPayload(type, json);
}

/** The same instruction again is one; another under its tag would never be run (engine.md A10). */
function sameOrRefused(present: KeptRow, { tag, type, request, nid }: InstructionRow): KeptRow {
  if (present.row.type === type && present.row.request.digest === request.digest) return present;
  throw new AgentError('dispatch.duplicate_tag', { problem: `node ${nid} has another instruction with tag ${tag}` });
}

export function unknownNode(nid: Nid): AgentError {
  return new AgentError('fleet.unknown_node', { problem: `there is no node ${nid}` });
}

function matches({ row }: KeptRow, { nid, tag }: InstructionFilter): boolean {
  return (nid === undefined || row.nid === nid) && (tag === undefined || row.tag === tag);
}

function inOrder(one: KeptRow, other: KeptRow): number {
  const [a, b] = [orderOf(one), orderOf(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}
