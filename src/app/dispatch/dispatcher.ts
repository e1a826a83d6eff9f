import { isFinished, type KeptRow } from '../../domain/dispatch/model.js';
import { dueAt } from '../../domain/dispatch/plan.js';
import type { Tag } from '../../domain/instruction/model.js';
import { tag as asTag } from '../../domain/instruction/model.js';
import { DueQueue } from '../../domain/kernel/due-queue.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { EMPTY_JSON_B64, type LinkMessage, type Nid } from '../../domain/link/model.js';
import type { Clock } from '../../ports/clock.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import type { NodeSession, NodeUser } from '../link/node-session.js';
import type { InstructionBook } from './instruction-book.js';
import { type CurrentStream, type DeliveryParts, NodeDeliveries } from './node-deliveries.js';
import { ReplyKeeper, type ReplyOutcome, type ReplyParts } from './reply-keeper.js';

/** After a failure of the store a node is looked at again. */
const RETRY_MS = 1_000;
/** The wall clock may be set, so that nobody sleeps through more than this. */
const LOOK_MS = 10_000;

export interface DispatcherParts extends DeliveryParts, ReplyParts {
  readonly book: InstructionBook;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Why nothing is delivered to a node although it is there; empty when nothing stands against it. */
  readonly heldBack: (nid: Nid) => string;
}

/** What is counted, since the start. */
export interface DispatchCounters {
  readonly stored: number;
  /** Results that came after one had been stored. */
  readonly repeated: number;
  /** Replies to what was never sent, or is not known any more. */
  readonly stray: number;
  /** Results that could not be stored. */
  readonly lost: number;
}

interface Work {
  running: boolean;
  again: boolean;
}

/**
 * Sends instructions to the nodes whose streams are at this server, and keeps their results. Level-triggered: whatever happens only says
 * that a node is to be looked at.
 */
export class Dispatcher implements NodeUser {
  readonly #parts: DispatcherParts;
  readonly #deliveries: NodeDeliveries;
  readonly #replies: ReplyKeeper;
  readonly #streams = new Map<Nid, CurrentStream>();
  readonly #work = new Map<Nid, Work>();
  readonly #due = new DueQueue<Nid>();
  readonly #stop = new AbortController();
  #counters: DispatchCounters = { stored: 0, repeated: 0, stray: 0, lost: 0 };
  #timer: Promise<void> | undefined;
  #unsubscribe: () => void = () => {};
  #wake: () => void = () => {};

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#deliveries = new NodeDeliveries(parts);
    this.#replies = new ReplyKeeper(parts);
  }

  start(): void {
    this.#unsubscribe = this.#parts.book.onChange((nid, _, kept) => this.#changed(nid, kept));
    this.#timer ??= this.#watchTime();
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stop.abort();
    this.#wake();
    await this.#timer;
  }

  get counters(): DispatchCounters {
    return this.#counters;
  }

  opened(session: NodeSession): void {
    const sent = { tags: new Set<string>(), cancelled: new Set<string>(), cancelTags: new Set<string>() };
    this.#streams.set(session.identity.nid, { session, sent });
    this.look(session.identity.nid);
  }

  closed(session: NodeSession): void {
    const { nid } = session.identity;
    if (this.#streams.get(nid)?.session === session) this.#streams.delete(nid);
  }

  received(session: NodeSession, { type, tag: text, jsonB64 }: LinkMessage): boolean {
    const { nid, registration } = session.identity;
    const tag = asTag(text);
    if (tag === undefined) return false;
    const current = this.#streams.get(nid);
    if (current?.sent.cancelTags.delete(tag) === true) return true;
    if (this.#parts.book.get(nid, tag) === undefined) return false;
    const kept = this.#replies.keep({ nid, registration, tag, type, jsonB64 }, this.#stop.signal);
    void kept.then((outcome) => this.#answered(session, tag, outcome));
    return true;
  }

  /**
   * A result that came beside the stream. The store holds it when this resolves.
   * @throws AgentError `dispatch.not_found` for one that nobody asked for, `store.unavailable`
   */
  async uploaded({ identity: { nid, registration } }: PeerNode, { type, tag: text, jsonB64 }: LinkMessage): Promise<void> {
    const tag = asTag(text);
    const known = tag !== undefined && this.#parts.book.get(nid, tag) !== undefined;
    const outcome = known ? await this.#replies.keep({ nid, registration, tag, type, jsonB64 }, this.#stop.signal) : 'stray';
    if (outcome === 'stray') throw new AgentError('dispatch.not_found', { problem: `node ${nid} was not asked ${text}` });
    if (outcome === 'lost') throw new AgentError('store.unavailable', { problem: 'the result could not be stored' });
    const session = this.#streams.get(nid)?.session;
    if (known && session !== undefined) this.#answered(session, tag, outcome);
  }

  /** Something about the node has changed. */
  look(nid: Nid): void {
    const work = this.#work.get(nid) ?? { running: false, again: false };
    this.#work.set(nid, work);
    work.again = true;
    if (!work.running) void this.#run(nid, work);
  }

  /** One that has ended, and whose transport has not said so yet, is none. */
  #current(nid: Nid): CurrentStream | undefined {
    const current = this.#streams.get(nid);
    return current?.session.signal.aborted === true ? undefined : current;
  }

  /** Acknowledged on the stream it came on, if that agent knows acknowledgements; to others it would be an instruction (engine.md C1). */
  #answered(session: NodeSession, tag: Tag, outcome: ReplyOutcome): void {
    const counter = outcome === 'again' ? 'repeated' : outcome;
    this.#counters = { ...this.#counters, [counter]: this.#counters[counter] + 1 };
    const isHeld = outcome === 'stored' || outcome === 'again';
    if (isHeld && session.agent?.capabilities.has('result-ack') === true)
      void session.send({ type: 'RESULT_ACK', tag, jsonB64: EMPTY_JSON_B64 });
  }

  #changed(nid: Nid, kept: KeptRow | undefined): void {
    if (kept !== undefined && !isFinished(kept.row)) this.#noteDue(nid, dueAt(kept.row));
    if (this.#streams.has(nid)) this.look(nid);
  }

  /** The earliest time counts; a look that comes too early does nothing. */
  #noteDue(nid: Nid, at: number): void {
    const before = this.#due.next();
    this.#due.setEarlier(nid, at);
    if (before === undefined || at < before) this.#wake();
  }

  async #run(nid: Nid, work: Work): Promise<void> {
    const { signal } = this.#stop;
    work.running = true;
    while (work.again && !signal.aborted) {
      work.again = false;
      try {
        const held = this.#parts.heldBack(nid) !== '';
        if (await this.#deliveries.run(nid, this.#current(nid), held, signal)) work.again = true;
      } catch (error) {
        if (signal.aborted) break;
        this.#parts.logger.warn('the instructions of a node could not be brought forward', { nid, error, retryMs: RETRY_MS });
        this.#noteDue(nid, this.#parts.clock.now() + RETRY_MS);
      }
    }
    this.#noteAll(nid);
    work.running = false;
    if (!work.again) this.#work.delete(nid);
  }

  /** What is due next, also because two older agents are contesting the node. */
  #noteAll(nid: Nid): void {
    const now = this.#parts.clock.now();
    const open = this.#parts.book.open(nid);
    for (const { row } of open) {
      const due = dueAt(row);
      // What is overdue still has failed.
      this.#noteDue(nid, due > now ? due : now + RETRY_MS);
    }
    const holdMs = this.#streams.get(nid)?.session.holdMs() ?? 0;
    if (open.length > 0 && holdMs > 0) this.#noteDue(nid, now + holdMs);
  }

  async #watchTime(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      for (let nid = this.#due.take(clock.now()); nid !== undefined; nid = this.#due.take(clock.now())) this.look(nid);
      const waitMs = Math.max(1, Math.min(LOOK_MS, (this.#due.next() ?? Number.POSITIVE_INFINITY) - clock.now()));
      await this.#sleep(waitMs, signal);
    }
  }

  /** Until it is over, or something is due earlier. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    this.#wake = () => timer.abort();
    await this.#parts.clock.sleep(ms, { signal: AbortSignal.any([timer.signal, signal]) }).catch(() => {});
  }
}
