import { isSecret } from '../../domain/instruction/catalogue.js';
import { errorAnswer, type InstructionKey, keyText, type Reply } from '../../domain/instruction/model.js';
import { ResultOffers } from '../../domain/instruction/offers.js';
import { repliesToDrop } from '../../domain/instruction/retention.js';
import { ackedRow, handedRow, type Row, tombstoneOf } from '../../domain/instruction/row.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { LinkMessage } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Journal, JournalChange, StoredReply } from '../../ports/instruction/journal.js';
import type { Logger } from '../../ports/logger.js';
import type { LinkSession } from '../link/link-session.js';
import { encodeAnswer, replyBytes } from './encode.js';

/** A larger body goes beside the stream, where the server takes it there (engine.md A15c). */
export const UPLOAD_B64 = 256 * 1024;

/** The way of a large reply to its server, beside the stream; the server holds it when it resolves. */
export type UploadReply = (reply: LinkMessage, options: CallOptions) => Promise<void>;

export interface ResultsParts {
  readonly upload: UploadReply;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A finished instruction whose reply is kept. */
interface Kept {
  row: Row;
  readonly bytes: number;
  /** When it was last sent on the current stream; monotonic clock. */
  sentAt: number | undefined;
  /** In memory only until the journal has it (engine.md K). */
  unwritten: { readonly reply: StoredReply; readonly changes: readonly JournalChange[] } | undefined;
}

interface Stream {
  readonly session: LinkSession;
  readonly fleet: string;
  readonly acks: boolean;
  /** Whether it takes uploads; false from the first one on that it does not know after all. */
  uploads: boolean;
  /** One after the other, so that a slow line carries one large body at a time. */
  uploading: Promise<void>;
  /** Those that wait or go. */
  readonly onTheWay: Set<string>;
}

/** What is known of a finished result. */
export interface FinishedResult {
  readonly row: Row;
  readonly reply: StoredReply;
  readonly bytes: number;
  /** Given when the journal could not take it: it is tried again with the sweep. */
  readonly unwritten?: readonly JournalChange[] | undefined;
}

/**
 * Replies from the moment in which they are durable to the one in which the server has them. Each goes out at once on the current stream of
 * its fleet; what was not confirmed is offered again on the next.
 */
export class Results {
  readonly #parts: ResultsParts;
  readonly #kept = new Map<string, Kept>();
  readonly #offers = new Map<string, ResultOffers>();
  readonly #waiters = new Map<string, () => void>();
  #stream: Stream | undefined;
  #wake: () => void = () => {};

  constructor(parts: ResultsParts) {
    this.#parts = parts;
  }

  get unconfirmed(): number {
    return [...this.#offers.values()].reduce((sum, { size }) => sum + size, 0);
  }

  rows(): readonly Row[] {
    return [...this.#kept.values()].map(({ row }) => row);
  }

  /** Of an instruction whose reply is kept. */
  row(id: string): Row | undefined {
    return this.#kept.get(id)?.row;
  }

  /** What an earlier process has left; offered on the next stream. */
  restore(row: Row, bytes: number): void {
    const id = keyText(row);
    this.#kept.set(id, { row, bytes, sentAt: undefined, unwritten: undefined });
    if (row.state === 'acked' || bytes === 0) return;
    const { clock } = this.#parts;
    const finishedAt = clock.monotonic() - Math.max(0, clock.now() - (row.finishedAt ?? 0));
    this.#offersOf(row.fleet).add({ id, bytes, finishedAt, waiterMs: row.waiterMs });
  }

  /** Resolves when the reply was handed to the transport, or cannot be now. */
  async add({ row, reply, bytes, unwritten }: FinishedResult): Promise<void> {
    const id = keyText(row);
    const memory = unwritten === undefined ? undefined : { reply, changes: unwritten };
    this.#kept.set(id, { row, bytes, sentAt: undefined, unwritten: memory });
    if (reply === 'none') return;
    const { clock } = this.#parts;
    const offers = this.#offersOf(row.fleet);
    offers.add({ id, bytes, finishedAt: clock.monotonic(), waiterMs: row.waiterMs });
    const stream = this.#stream;
    if (stream?.fleet !== row.fleet) return;
    offers.sent(id, clock.monotonic());
    await this.#send(stream, id, reply);
    this.#wake();
  }

  /** The server has asked again, at `askedAt` on the monotonic clock, for a reply that is kept. */
  async again(id: string, askedAt: number): Promise<void> {
    const [stream, kept] = [this.#stream, this.#kept.get(id)];
    if (stream === undefined || kept === undefined) return;
    // What was sent meanwhile answers this as well, and what is unconfirmed may have crossed the question.
    if (kept.sentAt !== undefined && kept.sentAt >= askedAt) return;
    if (this.#offersOf(stream.fleet).isOut(id, this.#parts.clock.monotonic())) return;
    await this.#offerOne(stream, id);
  }

  /** A reply that is in no journal: lost when its server is gone, or the stream `only` that it is for. */
  say({ fleet, tag }: InstructionKey, reply: StoredReply, only?: LinkSession): void {
    const stream = this.#stream;
    if (reply === 'none' || stream?.fleet !== fleet || (only !== undefined && stream.session !== only)) return;
    const { type, jsonB64 } = reply;
    stream.session.send({ type, tag, jsonB64 }).catch((error: unknown) => {
      this.#parts.logger.debug('a reply was not sent', { tag, error });
    });
  }

  /** A confirmation (engine.md C1); of anything else it changes nothing. */
  acked(key: InstructionKey): boolean {
    const id = keyText(key);
    const kept = this.#kept.get(id);
    if (kept === undefined || kept.row.state === 'acked') return false;
    kept.row = ackedRow(kept.row, this.#parts.clock.now());
    this.#offersOf(key.fleet).remove(id);
    this.#waiters.get(id)?.();
    if (isSecret(kept.row.type)) this.#dropSecret(kept.row);
    else this.#note(kept);
    this.#wake();
    return true;
  }

  /** Resolves when the result was confirmed, after `ms`, and at once where nothing is confirmed. */
  async confirmed(row: Row, ms: number, signal: AbortSignal): Promise<void> {
    const id = keyText(row);
    if (this.#stream?.acks !== true || !this.#offersOf(row.fleet).has(id)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.set(id, resolve);
    const over = new AbortController();
    const slept = this.#parts.clock.sleep(ms, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => {});
    await Promise.race([promise, slept]);
    over.abort();
    this.#waiters.delete(id);
  }

  /** Offers what is due until the session is over. */
  opened(session: LinkSession, fleet: string): void {
    const acks = session.server?.capabilities.has('result-ack') ?? false;
    const uploads = session.server?.capabilities.has('result-upload') ?? false;
    const stream: Stream = { session, fleet, acks, uploads, uploading: Promise.resolve(), onTheWay: new Set() };
    this.#stream = stream;
    for (const kept of this.#kept.values()) kept.sentAt = undefined;
    this.#offersOf(fleet).opened(acks, this.#parts.clock.monotonic());
    this.#offer(stream).catch((error: unknown) => this.#parts.logger.error('results are not offered', { error }));
  }

  closed(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    if (stream === undefined) return;
    const { clock, logger } = this.#parts;
    const culprit = this.#offersOf(stream.fleet).closed(clock.monotonic());
    this.#wake();
    if (culprit === undefined) return;
    this.#setAside(culprit).catch((error: unknown) => logger.error('a result is not offered any more', { id: culprit, error }));
  }

  /** What was kept in memory only is written, and replies that are too old, too many or too large go. */
  async sweep(signal: AbortSignal): Promise<void> {
    const { journal, clock } = this.#parts;
    for (const kept of this.#kept.values()) {
      if (kept.unwritten === undefined) continue;
      await journal.commit([...kept.unwritten.changes, { change: 'row', row: kept.row }], { signal });
      kept.unwritten = undefined;
    }
    const held = [...this.#kept].map(([id, { row, bytes }]) => ({
      ...{ id, bytes, ackedAt: row.ackedAt, secret: isSecret(row.type) },
      finishedAt: row.finishedAt ?? 0,
    }));
    const dropped = repliesToDrop(held, clock.now()).flatMap((id) => this.#kept.get(id)?.row ?? []);
    if (dropped.length > 0) await this.#drop(dropped, signal);
  }

  async #drop(dropped: readonly Row[], signal: AbortSignal): Promise<void> {
    const changes = dropped.flatMap((row): readonly JournalChange[] => [
      { change: 'row', row: tombstoneOf(row) },
      { change: 'reply', key: keyOf(row), reply: undefined },
    ]);
    await this.#parts.journal.commit(changes, { signal });
    for (const row of dropped) {
      this.#kept.delete(keyText(row));
      this.#offersOf(row.fleet).remove(keyText(row));
    }
  }

  /** Two connections have died after it was sent: an ERROR goes out in its place, and it stays here (engine.md A15b). */
  async #setAside(id: string): Promise<void> {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    const { row } = kept;
    const offers = this.#offersOf(row.fleet);
    offers.remove(id);
    const reply = await this.#replyOf(kept);
    if (reply === undefined || reply === 'none') return;
    this.#parts.logger.error('a result was set aside: two connections have died after it was sent', {
      tag: row.tag,
      type: row.type,
    });
    const error = encodeAnswer(errorAnswer(poisonText(reply)));
    const changes: readonly JournalChange[] = [
      { change: 'set_aside', key: keyOf(row), reply, secret: isSecret(row.type) },
      { change: 'reply', key: keyOf(row), reply: error },
    ];
    const written = await this.#parts.journal.commit(changes, { signal: NEVER }).then(
      () => true,
      () => false,
    );
    const bytes = replyBytes(error);
    this.#kept.set(id, { ...kept, bytes, unwritten: written ? undefined : { reply: error, changes } });
    offers.add({ id, bytes, finishedAt: this.#parts.clock.monotonic(), waiterMs: row.waiterMs });
    this.#wake();
  }

  async #offer(stream: Stream): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = stream.session;
    const offers = this.#offersOf(stream.fleet);
    while (this.#stream === stream && !signal.aborted) {
      const { send, delivered, nextAt } = offers.due(clock.monotonic());
      for (const id of delivered) this.#delivered(id);
      for (const id of send) await this.#offerOne(stream, id);
      if (send.length === 0) await this.#nap(nextAt, signal);
    }
  }

  async #offerOne(stream: Stream, id: string): Promise<void> {
    const kept = this.#kept.get(id);
    try {
      const reply = kept === undefined ? undefined : await this.#replyOf(kept);
      if (reply === undefined || reply === 'none') this.#offersOf(stream.fleet).remove(id);
      else await this.#send(stream, id, reply);
    } catch (error) {
      // It stays, and is offered again when its time is over.
      this.#parts.logger.warn('a stored reply could not be read', { id, error });
    }
  }

  /** Until `at` or until something changes. */
  async #nap(at: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    stop.addEventListener('abort', () => resolve(), { once: true });
    const slept = at === undefined ? promise : clock.sleep(Math.max(0, at - clock.monotonic()), { signal: stop }).catch(() => {});
    await Promise.race([promise, slept]);
    over.abort();
  }

  /** A large one is on its way when it resolves, and waits for its turn. */
  async #send(stream: Stream, id: string, reply: Reply): Promise<void> {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    kept.sentAt = this.#parts.clock.monotonic();
    if (!stream.uploads || reply.jsonB64.length <= UPLOAD_B64) return this.#sendOnStream(stream, kept, reply);
    // Offered once more while it is still on its way: a slow line takes minutes.
    if (stream.onTheWay.has(id)) return;
    stream.onTheWay.add(id);
    stream.uploading = stream.uploading.then(() => this.#upload(stream, id, reply)).finally(() => stream.onTheWay.delete(id));
  }

  async #sendOnStream({ session }: Stream, kept: Kept, { type, jsonB64 }: Reply): Promise<void> {
    const { tag } = kept.row;
    // It may be confirmed before the transport says that it has taken it.
    if (!(await session.send({ type, tag, jsonB64 })) || kept.row.state !== 'finished') return;
    kept.row = handedRow(kept.row);
    this.#note(kept);
  }

  /** Whole or not at all: what a lost connection has cut off begins anew on the next stream. Does not throw. */
  async #upload(stream: Stream, id: string, reply: Reply): Promise<void> {
    const { upload, clock, logger } = this.#parts;
    const { signal } = stream.session;
    const kept = this.#kept.get(id);
    if (kept === undefined || kept.row.state === 'acked' || signal.aborted) return;
    try {
      if (stream.uploads) {
        await upload({ ...reply, tag: kept.row.tag }, { signal });
        // The server holds it, whether or not it also says so on the stream.
        this.acked(kept.row);
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.warn('a large result was not uploaded', { tag: kept.row.tag, error });
      // It is offered again in its time, but for a server that does not know the call.
      if (!(error instanceof AgentError) || error.code !== 'link.not_offered') return;
      stream.uploads = false;
    }
    this.#offersOf(stream.fleet).sent(id, clock.monotonic());
    await this.#sendOnStream(stream, kept, reply).catch((error: unknown) =>
      logger.warn('a large result was not sent', { tag: kept.row.tag, error }),
    );
  }

  #delivered(id: string): void {
    const row = this.#kept.get(id)?.row;
    if (row !== undefined) this.acked(row);
  }

  async #replyOf({ row, unwritten }: Kept): Promise<StoredReply | undefined> {
    return unwritten === undefined ? this.#parts.journal.reply(keyOf(row), { signal: NEVER }) : unwritten.reply;
  }

  /** That it was handed over or confirmed may be lost: it is only sent once more. */
  #note({ row, unwritten }: Kept): void {
    if (unwritten !== undefined) return;
    this.#parts.journal.commit([{ change: 'row', row }], { signal: NEVER }).catch((error: unknown) => {
      this.#parts.logger.debug('not journalled that a reply was sent', { tag: row.tag, error });
    });
  }

  /** Nobody asks for it again; when it cannot be dropped now, the sweep does it. */
  #dropSecret(row: Row): void {
    this.#drop([row], NEVER).catch((error: unknown) => {
      this.#parts.logger.debug('a secret reply stays for now', { tag: row.tag, error });
    });
  }

  #offersOf(fleet: string): ResultOffers {
    const offers = this.#offers.get(fleet) ?? new ResultOffers();
    this.#offers.set(fleet, offers);
    return offers;
  }
}

function poisonText({ type, jsonB64 }: Reply): string {
  const size = `${jsonB64.length} bytes of type ${type}`;
  return `RESULT_SET_ASIDE: the instruction was carried out; two connections died after its result (${size}) was sent, and it is kept on the node`;
}

export function keyOf({ fleet, tag }: Row): InstructionKey {
  return { fleet, tag };
}

const NEVER = new AbortController().signal;
