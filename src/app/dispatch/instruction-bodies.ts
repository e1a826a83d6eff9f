import { commitGroups, pieces } from '../../domain/dispatch/body.js';
import type { BodyFacts } from '../../domain/dispatch/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ControlStore, Write } from '../../ports/store/control-store.js';
import type { Sealer } from '../../ports/store/sealer.js';

export interface BodyParts {
  readonly store: ControlStore;
  readonly sealer: Sealer;
  /** SHA-256 in hex of the text as UTF-8. */
  readonly sha256: (text: string) => string;
}

/** What instructions and their results say, sealed under `<prefix><n>` (engine.md A14). */
export class InstructionBodies {
  readonly #parts: BodyParts;

  constructor(parts: BodyParts) {
    this.#parts = parts;
  }

  factsOf(text: string): BodyFacts {
    return { pieces: pieces(text).length, bytes: Buffer.byteLength(text), digest: this.#parts.sha256(text) };
  }

  /**
   * Writes all of a large text but its last part, which is given back: whoever commits it together with the row, which has the digest,
   * makes the text whole. @throws AgentError as `ControlStore.commit`
   */
  async write(prefix: string, text: string, options: CallOptions): Promise<readonly Write[]> {
    const { store, sealer } = this.#parts;
    const groups = commitGroups(pieces(text), (piece) => Buffer.byteLength(piece));
    let number = 0;
    const sealed = groups.map((group) =>
      group.map((piece) => {
        const key = `${prefix}${number++}`;
        return { key, value: sealer.seal(key, piece) };
      }),
    );
    for (const writes of sealed.slice(0, -1)) await store.commit([], writes, options);
    return sealed.at(-1) ?? [];
  }

  /**
   * Undefined when it is not there, or not as it was written.
   * @throws AgentError `store.unavailable`, `store.key_wrong`, `store.seal_broken`
   */
  async read(prefix: string, facts: BodyFacts, options: CallOptions): Promise<string | undefined> {
    const { store, sealer, sha256 } = this.#parts;
    const keys = Array.from({ length: facts.pieces }, (_, number) => `${prefix}${number}`);
    const kept = await Promise.all(keys.map((key) => store.get(key, options)));
    const text = kept.map((value) => (value === undefined ? '' : sealer.open(value.key, value.value))).join('');
    return sha256(text) === facts.digest ? text : undefined;
  }
}

/** What removes a body. */
export function removals(prefix: string, { pieces }: BodyFacts): readonly Write[] {
  return Array.from({ length: pieces }, (_, number) => ({ key: `${prefix}${number}`, value: null }));
}
