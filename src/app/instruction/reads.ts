import { keyText } from '../../domain/instruction/model.js';
import type { StoredReply } from '../../ports/instruction/journal.js';
import { replyBytes } from './encode.js';
import type { Request } from './request.js';

/** Replies of instructions without effect, which are not journalled (engine.md A2). */
export const MOST_RECENT = 1_000;
/** A web page in a reply may have 12 MiB; one that is forgotten early is only read once more. */
export const MOST_RECENT_BYTES = 32 * 1024 * 1024;

interface Recent {
  readonly digest: string;
  /** Undefined while it runs: its one answer is the repeat's as well. */
  readonly reply: StoredReply | undefined;
}

export type Repeat = { readonly kind: 'new' | 'attach' | 'reused' } | { readonly kind: 'answer'; readonly reply: StoredReply };

/** The memory of them, by tag. */
export class RecentReads {
  /** Oldest first. */
  readonly #recent = new Map<string, Recent>();
  #bytes = 0;

  /** What a request is to this memory; a new one is in it from here on. */
  enter({ key, digest }: Request): Repeat {
    const known = this.find(keyText(key));
    if (known === undefined) {
      this.#put(keyText(key), { digest, reply: undefined });
      return { kind: 'new' };
    }
    if (known.digest !== digest) return { kind: 'reused' };
    return known.reply === undefined ? { kind: 'attach' } : { kind: 'answer', reply: known.reply };
  }

  find(id: string): Recent | undefined {
    return this.#recent.get(id);
  }

  answered(id: string, reply: StoredReply): void {
    const known = this.#recent.get(id);
    if (known === undefined || known.reply !== undefined) return;
    this.#recent.set(id, { ...known, reply });
    this.#bytes += replyBytes(reply);
    this.#forget();
  }

  #put(id: string, recent: Recent): void {
    this.#recent.set(id, recent);
    this.#forget();
  }

  /** The oldest that are answered: one that runs is still to be found. */
  #forget(): void {
    if (this.#recent.size <= MOST_RECENT && this.#bytes <= MOST_RECENT_BYTES) return;
    for (const [old, { reply }] of this.#recent) {
      if (this.#recent.size <= MOST_RECENT && this.#bytes <= MOST_RECENT_BYTES) return;
      if (reply === undefined) continue;
      this.#recent.delete(old);
      this.#bytes -= replyBytes(reply);
    }
  }
}
