import { isFinished } from '../../domain/dispatch/model.js';
import { newerThan, OUTPUT_TYPE, type OutputPiece, type OutputStream, readOutput } from '../../domain/instruction/live-output.js';
import type { Tag } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { LinkMessage, Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { LiveOutputs } from '../../ports/driving/live-outputs.js';
import type { NodeSession, NodeUser } from '../link/node-session.js';
import type { PresenceBoard } from '../link/presence-board.js';
import type { InstructionBook } from './instruction-book.js';

/** Kept of one instruction, for who comes later. */
export const KEPT_BYTES = 64 * 1024;
/** Kept of all: the newest 256 that say as much as they can. */
export const ALL_KEPT_BYTES = 16 * 1024 * 1024;
/** A reader that does not take more than this misses what is older. */
export const UNREAD_BYTES = 1024 * 1024;

export interface OutputRelayParts {
  readonly book: InstructionBook;
  readonly presence: PresenceBoard;
  /** Id of this replica. */
  readonly server: string;
}

/** What was said last, oldest first, in so many bytes. */
class Recent {
  readonly #most: number;
  #pieces: OutputPiece[] = [];
  bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get pieces(): readonly OutputPiece[] {
    return this.#pieces;
  }

  add(piece: OutputPiece): void {
    this.#pieces.push(piece);
    this.bytes += piece.bytes.length;
    while (this.bytes > this.#most) this.take();
  }

  take(): OutputPiece | undefined {
    const piece = this.#pieces.shift();
    this.bytes -= piece?.bytes.length ?? 0;
    return piece;
  }
}

interface Reader {
  readonly unread: Recent;
  wake: () => void;
}

interface Spoken {
  readonly recent: Recent;
  readonly seen: Record<OutputStream, number>;
}

/** Passes on what scripts of nodes say while they run, from the streams that are at this server to those who look here. */
export class OutputRelay implements NodeUser, LiveOutputs {
  readonly #parts: OutputRelayParts;
  /** The one that has said something last is at the end. */
  readonly #spoken = new Map<string, Spoken>();
  readonly #readers = new Map<string, Set<Reader>>();
  #keptBytes = 0;
  #stray = 0;

  constructor(parts: OutputRelayParts) {
    this.#parts = parts;
  }

  /** Pieces of what was not asked for, or is over. */
  get stray(): number {
    return this.#stray;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  opened(): void {}

  closed(): void {}

  /** A type of its own: under whatever tag it comes, it is the result of nothing. */
  received({ identity: { nid, registration } }: NodeSession, { type, jsonB64 }: LinkMessage): boolean {
    if (type !== OUTPUT_TYPE) return false;
    const piece = readOutput(jsonB64);
    const row = piece === undefined ? undefined : this.#parts.book.get(nid, piece.of)?.row;
    if (piece === undefined || row?.state !== 'delivered' || row.registration !== registration) this.#stray += 1;
    else this.#take(nid, piece);
    return true;
  }

  async *follow(nid: Nid, tag: Tag, { signal }: CallOptions): AsyncGenerator<OutputPiece> {
    const { book } = this.#parts;
    await book.reached(0n, { signal });
    if (book.get(nid, tag) === undefined)
      throw new AgentError('dispatch.not_found', { problem: `node ${nid} has no instruction ${tag}` });
    this.#mustBeHere(nid);
    const key = keyOf(nid, tag);
    const reader: Reader = { unread: new Recent(UNREAD_BYTES), wake: () => {} };
    for (const piece of this.#spoken.get(key)?.recent.pieces ?? []) reader.unread.add(piece);
    const readers = this.#readers.get(key) ?? new Set();
    this.#readers.set(key, readers.add(reader));
    const wake = () => reader.wake();
    const unsubscribe = book.onChange((changed, which) => changed === nid && which === tag && wake());
    signal.addEventListener('abort', wake, { once: true });
    try {
      for (;;) {
        const next = reader.unread.take();
        if (next !== undefined) yield next;
        else if (signal.aborted || this.#isOver(nid, tag)) return;
        else
          await new Promise<void>((resolve) => {
            reader.wake = resolve;
          });
      }
    } finally {
      signal.removeEventListener('abort', wake);
      unsubscribe();
      readers.delete(reader);
      if (readers.size === 0 && this.#readers.get(key) === readers) this.#readers.delete(key);
    }
  }

  #isOver(nid: Nid, tag: Tag): boolean {
    const kept = this.#parts.book.get(nid, tag);
    if (kept !== undefined && !isFinished(kept.row)) return false;
    this.#forget(keyOf(nid, tag));
    return true;
  }

  /** @throws AgentError `dispatch.elsewhere` */
  #mustBeHere(nid: Nid): void {
    const { presence, server } = this.#parts;
    const seen = presence.get(nid);
    if (seen?.connected !== true || seen.state === 'offline' || seen.server === server) return;
    throw new AgentError('dispatch.elsewhere', { problem: `the stream of node ${nid} is at replica ${seen.server}` });
  }

  #take(nid: Nid, piece: OutputPiece): void {
    const key = keyOf(nid, piece.of);
    const spoken = this.#spoken.get(key) ?? { recent: new Recent(KEPT_BYTES), seen: { stdout: 0, stderr: 0 } };
    const news = newerThan(piece, spoken.seen[piece.stream]);
    if (news === undefined) return;
    spoken.seen[piece.stream] = news.seq + news.bytes.length;
    this.#spoken.delete(key);
    this.#spoken.set(key, spoken);
    this.#keptBytes -= spoken.recent.bytes;
    spoken.recent.add(news);
    this.#keptBytes += spoken.recent.bytes;
    for (const [oldest] of this.#spoken) {
      if (this.#keptBytes <= ALL_KEPT_BYTES) break;
      this.#forget(oldest);
    }
    for (const reader of this.#readers.get(key) ?? []) {
      reader.unread.add(news);
      reader.wake();
    }
  }

  #forget(key: string): void {
    this.#keptBytes -= this.#spoken.get(key)?.recent.bytes ?? 0;
    this.#spoken.delete(key);
  }
}

/** No id of a node has a space. */
function keyOf(nid: Nid, tag: Tag): string {
  return `${nid} ${tag}`;
}
