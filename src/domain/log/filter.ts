import {
  type Change,
  type Cursor,
  type Entry,
  type LogFrame,
  type LogKey,
  type Revision,
  revision,
  type SnapshotItem,
} from './model.js';

/** So many entries in a row of which the reader sees nothing; then a bookmark leads on (engine.md E2). */
export const MOST_SKIPPED = 1_000;

/** Whether a reader may see a key. */
export type Reads = (key: LogKey) => boolean;

export function visibleChanges({ changes }: Entry, reads: Reads): readonly Change[] {
  const visible = changes.filter(({ key }) => reads(key));
  return visible.length === changes.length ? changes : visible;
}

export function visibleItems(items: readonly SnapshotItem[], reads: Reads, prefix = ''): readonly SnapshotItem[] {
  return items.filter(({ key }) => key.startsWith(prefix) && reads(key));
}

/**
 * One reader's stream of a part of the log, made of the frames of the whole: what it is sent is continuous in itself, each frame naming
 * the one before it, though it skips entries in which there is nothing for the reader.
 */
export class FilteredStream {
  /** Where the reader is. */
  #sent: Cursor;
  /** Where the log has been looked through to. */
  #at: Cursor;
  #skipped = 0;
  #head: Revision;
  #ageMs = 0;

  constructor(from: Cursor) {
    this.#sent = from;
    this.#at = from;
    this.#head = from.revision;
  }

  get at(): Revision {
    return this.#at.revision;
  }

  /** As the newest bookmark said, and never behind what has been seen. */
  get head(): Revision {
    const { revision } = this.#at;
    if (revision > this.#head) return revision;
    return this.#head;
  }

  get ageMs(): number {
    return this.#ageMs;
  }

  /**
   * What follows for the reader from a frame of the whole log, of whose changes it may see `visible`; undefined while there is nothing
   * to say.
   * @throws RangeError when the frame does not follow on the one before it
   */
  take(frame: LogFrame, visible: readonly Change[]): LogFrame | undefined {
    if (frame.previous !== this.#at.revision) throw new RangeError(`a frame after ${frame.previous} does not follow ${this.at}`);
    if (frame.kind === 'bookmark') {
      this.#moveTo(frame);
      this.#head = frame.head;
      this.#ageMs = frame.ageMs;
      return this.#bookmark();
    }
    this.#moveTo(frame.entry);
    if (visible.length > 0) return this.#entry(frame.entry, visible);
    this.#skipped += 1;
    return this.#skipped < MOST_SKIPPED ? undefined : this.#bookmark();
  }

  #moveTo({ revision, digest }: Pick<Cursor, 'revision' | 'digest'>): void {
    this.#at = { logId: this.#at.logId, revision, digest };
  }

  #entry(entry: Entry, changes: readonly Change[]): LogFrame {
    const { revision: previous, digest: previousDigest } = this.#sent;
    this.#goOn();
    return { kind: 'entry', previous, entry: { ...entry, previousDigest, changes } };
  }

  #bookmark(): LogFrame {
    const previous = this.#sent.revision;
    this.#goOn();
    const { revision, digest } = this.#at;
    return { kind: 'bookmark', previous, revision, digest, head: this.head, ageMs: this.#ageMs };
  }

  #goOn(): void {
    this.#sent = this.#at;
    this.#skipped = 0;
  }
}

/** The keys of a snapshot that is not used yet, kept up with the entries that come meanwhile. */
export class PendingItems {
  readonly #items: Map<LogKey, SnapshotItem>;

  constructor(items: readonly SnapshotItem[]) {
    this.#items = new Map(items.map((item) => [item.key, item]));
  }

  fold({ revision: at, changes }: Entry): void {
    for (const { key, value } of changes) {
      if (value === null) this.#items.delete(key);
      else this.#items.set(key, { key, value, revision: revision(at) });
    }
  }

  /** Sorted by key. */
  items(): readonly SnapshotItem[] {
    return [...this.#items.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }
}
