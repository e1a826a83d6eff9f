import type { InstructionKey } from '../../domain/instruction/model.js';
import { keyText } from '../../domain/instruction/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Journal, JournalChange, StoredReply, TombstoneLimits } from '../../ports/instruction/journal.js';
import type { Logger } from '../../ports/logger.js';
import type { Sealer } from '../../ports/store/sealer.js';

/** Neither base64 nor the type of a reply has a colon. */
const SEALED = 'sealed:';

export interface SealedJournalParts {
  readonly journal: Journal;
  readonly sealer: Sealer;
  readonly logger: Logger;
}

/** A journal that keeps what is secret sealed: a copy of its file is of no use without the key file. */
export class SealedJournal implements Journal {
  readonly #parts: SealedJournalParts;

  constructor(parts: SealedJournalParts) {
    this.#parts = parts;
  }

  open(options: CallOptions) {
    return this.#parts.journal.open(options);
  }

  facts() {
    return this.#parts.journal.facts();
  }

  commit(changes: readonly JournalChange[], options: CallOptions): Promise<void> {
    return this.#parts.journal.commit(
      changes.map((change) => this.#sealed(change)),
      options,
    );
  }

  find(keys: readonly InstructionKey[], options: CallOptions) {
    return this.#parts.journal.find(keys, options);
  }

  /** Undefined as well when the key that it was sealed with is gone. */
  async reply(key: InstructionKey, options: CallOptions): Promise<StoredReply | undefined> {
    return this.#opened(key, await this.#parts.journal.reply(key, options));
  }

  async setAside(key: InstructionKey, options: CallOptions): Promise<StoredReply | undefined> {
    return this.#opened(key, await this.#parts.journal.setAside(key, options));
  }

  async payload(key: InstructionKey, options: CallOptions): Promise<string | undefined> {
    const stored = await this.#parts.journal.payload(key, options);
    return stored?.startsWith(SEALED) ? this.#open(nameOf(key, 'payload'), stored.slice(SEALED.length)) : stored;
  }

  vipGeneration(fleet: string, options: CallOptions) {
    return this.#parts.journal.vipGeneration(fleet, options);
  }

  prune(limits: TombstoneLimits, options: CallOptions) {
    return this.#parts.journal.prune(limits, options);
  }

  close() {
    return this.#parts.journal.close();
  }

  problems() {
    return this.#parts.journal.problems();
  }

  #sealed(change: JournalChange): JournalChange {
    const { sealer } = this.#parts;
    switch (change.change) {
      case 'payload': {
        const { key, jsonB64, secret } = change;
        if (secret !== true || jsonB64 === undefined) return change;
        return { ...change, jsonB64: `${SEALED}${sealer.seal(nameOf(key, 'payload'), jsonB64)}` };
      }
      case 'reply':
      case 'set_aside': {
        const { key, reply, secret } = change;
        if (secret !== true || reply === undefined || reply === 'none') return change;
        const { type, jsonB64 } = reply;
        return { ...change, reply: { type: `${SEALED}${type}`, jsonB64: sealer.seal(nameOf(key, 'reply'), jsonB64) } };
      }
      default:
        return change;
    }
  }

  #opened(key: InstructionKey, stored: StoredReply | undefined): StoredReply | undefined {
    if (stored === undefined || stored === 'none' || !stored.type.startsWith(SEALED)) return stored;
    const jsonB64 = this.#open(nameOf(key, 'reply'), stored.jsonB64);
    return jsonB64 === undefined ? undefined : { type: stored.type.slice(SEALED.length), jsonB64 };
  }

  #open(name: string, sealed: string): string | undefined {
    try {
      return this.#parts.sealer.open(name, sealed);
    } catch (error) {
      this.#parts.logger.error('what is sealed in the journal cannot be read', { name, error });
      return undefined;
    }
  }
}

/** What is sealed can be opened in its own place only. */
function nameOf(key: InstructionKey, what: string): string {
  return `journal/${what}/${keyText(key)}`;
}
