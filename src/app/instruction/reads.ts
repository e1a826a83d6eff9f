import { keyText } from '../../domain/instruction/model.js';
import type { StoredReply } from '../../ports/instruction/journal.js';
import type { Request } from './request.js';

/** Replies of instructions without effect, which are not journalled (engine.md A2). */
export const MOST_RECENT = 1_000;

interface Recent {
  readonly digest: string;
  /** Undefined while it runs: its one answer is the repeat's as well. */
  readonly reply: StoredReply | undefined;
}

export type Repeat = { readonly kind: 'new' | 'attach' | 'reused' } | { readonly kind: 'answer'; readonly reply: StoredReply };

/** The memory of them, by tag. */
export class RecentReads {
  readonly #recent = new Map<string, Recent>();

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
    if (known !== undefined) this.#recent.set(id, { ...known, reply });
  }

  #put(id: string, recent: Recent): void {
    this.#recent.set(id, recent);
    if (this.#recent.size <= MOST_RECENT) return;
    // The oldest that is answered: one that runs is still to be found.
    for (const [old, { reply }] of this.#recent) {
      if (reply === undefined) continue;
      this.#recent.delete(old);
      return;
    }
  }
}
