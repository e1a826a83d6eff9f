import {
  type Change,
  type Digest,
  ENTRY_VERSION,
  type Entry,
  type LogId,
  type LogKey,
  type Precondition,
  type Revision,
  revision,
  type Snapshot,
  ZERO_DIGEST,
  ZERO_REVISION,
} from '../../src/domain/log/model.js';

/** What one proposal needs of a log, synchronously: for tests of what is pure. */
export class SmallLog {
  readonly #items = new Map<LogKey, { readonly value: string; readonly revision: Revision }>();
  #revision = ZERO_REVISION;
  #time = 0;

  /** The entry that it became; `undefined` when there is no change. @throws Error when a precondition fails or a key comes twice. */
  propose(proposal: { readonly changes: readonly Change[]; readonly preconditions?: readonly Precondition[] }, now: number) {
    const { changes, preconditions = [] } = proposal;
    for (const { key, revision: expected } of preconditions) {
      const actual = this.#items.get(key)?.revision ?? ZERO_REVISION;
      if (actual !== expected) throw new Error(`${key} is at ${actual}, not at ${expected}`);
    }
    if (new Set(changes.map(({ key }) => key)).size < changes.length) throw new Error('a key is changed twice');
    if (changes.length === 0) return undefined;
    const entry = this.#entry(changes, now);
    for (const { key, value } of changes) {
      if (value === null) this.#items.delete(key);
      else this.#items.set(key, { value, revision: entry.revision });
    }
    return entry;
  }

  snapshot(): Snapshot {
    return {
      cursor: { logId: 'small-log' as LogId, revision: this.#revision, digest: digestOf(this.#revision) },
      time: this.#time,
      items: [...this.#items].map(([key, item]) => ({ key, ...item })).sort((a, b) => (a.key < b.key ? -1 : 1)),
    };
  }

  #entry(changes: readonly Change[], now: number): Entry {
    const previousDigest = digestOf(this.#revision);
    this.#revision = revision(this.#revision + 1n);
    this.#time = Math.max(this.#time, now);
    const digest = digestOf(this.#revision);
    return {
      version: ENTRY_VERSION,
      revision: this.#revision,
      time: this.#time,
      previousDigest,
      digest,
      requestId: undefined,
      changes,
    };
  }
}

/** Stands for the SHA-256: nothing here is asked whether the bytes are right. */
function digestOf(at: Revision): Digest {
  return at === ZERO_REVISION ? ZERO_DIGEST : (at.toString(16).padStart(64, '0') as Digest);
}
