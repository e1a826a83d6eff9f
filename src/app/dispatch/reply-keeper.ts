import { instructionKey, type KeptRow, replyPrefix } from '../../domain/dispatch/model.js';
import { answered, judgeReply } from '../../domain/dispatch/plan.js';
import type { Tag } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid, RegistrationId } from '../../domain/link/model.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { InstructionBodies } from './instruction-bodies.js';
import type { InstructionBook } from './instruction-book.js';
import { writesOf } from './node-deliveries.js';

/** An older agent sends its result once: the store has half a minute to come back. */
const RETRIES_MS = [1_000, 2_000, 4_000, 8_000, 16_000] as const;

export interface ReplyParts {
  readonly store: ControlStore;
  readonly book: InstructionBook;
  readonly bodies: InstructionBodies;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface NodeReply {
  readonly nid: Nid;
  readonly registration: RegistrationId;
  readonly tag: Tag;
  readonly type: string;
  readonly jsonB64: string;
}

/** `kept`: the store holds a result for the tag, this one or an earlier one. */
export type ReplyOutcome = 'stored' | 'again' | 'stray' | 'lost';

/** Puts results into the store: the first one for a node and a tag stands (engine.md A14). */
export class ReplyKeeper {
  readonly #parts: ReplyParts;
  readonly #turns = new Map<string, Promise<ReplyOutcome>>();

  constructor(parts: ReplyParts) {
    this.#parts = parts;
  }

  /** The store holds a result for the tag when it resolves with `stored` or `again`. Does not throw. */
  keep(reply: NodeReply, signal: AbortSignal): Promise<ReplyOutcome> {
    const key = instructionKey(reply.nid, reply.tag);
    const before = this.#turns.get(key) ?? Promise.resolve('stray' as const);
    const mine = before.then(() => this.#keepWithRetries(reply, signal));
    this.#turns.set(key, mine);
    void mine.then(() => {
      if (this.#turns.get(key) === mine) this.#turns.delete(key);
    });
    return mine;
  }

  async #keepWithRetries(reply: NodeReply, signal: AbortSignal): Promise<ReplyOutcome> {
    const { clock, logger } = this.#parts;
    for (const waitMs of [...RETRIES_MS, undefined]) {
      try {
        return await this.#keep(reply, signal);
      } catch (error) {
        if (signal.aborted) return 'lost';
        const { nid, tag } = reply;
        logger.warn('a result could not be stored', { nid, tag, error, retryMs: waitMs });
        // What no store takes is not taken later either.
        if (waitMs === undefined || !(error instanceof AgentError && error.kind === 'unavailable')) return 'lost';
        await clock.sleep(waitMs, { signal }).catch(() => {});
      }
    }
    return 'lost';
  }

  async #keep(reply: NodeReply, signal: AbortSignal): Promise<ReplyOutcome> {
    const { store, book, bodies, clock } = this.#parts;
    for (;;) {
      const kept = book.get(reply.nid, reply.tag);
      const verdict = judgeReply(kept, reply.registration);
      if (verdict !== 'first' || kept === undefined) return verdict === 'again' ? 'again' : 'stray';
      const last = await bodies.write(replyPrefix(reply.nid, reply.tag), reply.jsonB64, { signal });
      const row = answered(kept, { type: reply.type, body: bodies.factsOf(reply.jsonB64) }, clock.now());
      const condition = { key: instructionKey(reply.nid, reply.tag), version: kept.version };
      const version = await store.commit([condition], [...last, ...writesOf(kept, row)], { signal });
      if (version !== undefined) {
        await book.reached(version, { signal });
        return 'stored';
      }
      await this.#changed(kept, signal);
    }
  }

  /** Resolves when the book has another row than `kept`: the store had one already. */
  async #changed({ row, version }: KeptRow, signal: AbortSignal): Promise<void> {
    const { store, book } = this.#parts;
    const now = await store.get(instructionKey(row.nid, row.tag), { signal });
    await book.reached(now?.version ?? version + 1n, { signal });
  }
}
