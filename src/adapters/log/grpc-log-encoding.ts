import { type Reads, visibleChanges } from '../../domain/log/filter.js';
import type { Change, Entry, LogFrame, Revision } from '../../domain/log/model.js';
import { WatchResponse } from '../generated/holdfast/log/v1/log.js';

/** Of one message; a change or an item that is larger goes alone. */
export const MESSAGE_BYTES = 1024 * 1024;
/** What is kept encoded: as much as the log keeps in memory for its watchers. */
const CACHE_BYTES = 16 * 1024 * 1024;
/** Tag and lengths of a change or an item, and what belongs to the message itself. */
const OVERHEAD = 32;

/** What nodes see of an entry, encoded. */
export interface EncodedEntry {
  readonly changes: readonly Change[];
  /** The messages without what differs from stream to stream; none when nothing is seen. */
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
}

/**
 * Encodes what nodes see of each entry once for all of them (engine.md I1). A message is the fields that the streams share and, before
 * them, those of the stream: protobuf takes fields in any order, so that the two are encoded apart and only put together.
 */
export class EntryEncoder {
  readonly #reads: Reads;
  readonly #cache = new Map<Revision, EncodedEntry>();
  #bytes = 0;
  #encoded = 0;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** How many entries were encoded so far. */
  get encoded(): number {
    return this.#encoded;
  }

  encode(entry: Entry): EncodedEntry {
    const known = this.#cache.get(entry.revision);
    if (known !== undefined) return known;
    const changes = visibleChanges(entry, this.#reads);
    const parts = changes.length === 0 ? [] : encodeParts(entry, changes);
    const encoded = { changes, parts, bytes: parts.reduce((sum, { length }) => sum + length, OVERHEAD) };
    this.#encoded += 1;
    this.#keep(entry.revision, encoded);
    return encoded;
  }

  #keep(revision: Revision, encoded: EncodedEntry): void {
    this.#cache.set(revision, encoded);
    this.#bytes += encoded.bytes;
    for (const [oldest, { bytes }] of this.#cache) {
      if (this.#bytes <= CACHE_BYTES || this.#cache.size === 1) return;
      this.#cache.delete(oldest);
      this.#bytes -= bytes;
    }
  }
}

function encodeParts({ revision, digest, time }: Entry, changes: readonly Change[]): readonly Uint8Array[] {
  const chunks = inMessages(changes, ({ key, value }) => key.length + Buffer.byteLength(value ?? ''));
  return chunks.map((chunk, index) =>
    WatchResponse.encode(
      WatchResponse.create({
        ...{ revision, digest, timeMs: BigInt(time), last: index === chunks.length - 1 },
        changes: chunk.map(({ key, value }) => (value === null ? { key } : { key, value })),
      }),
    ).finish(),
  );
}

/** In order, each run within the size of a message. */
export function inMessages<T>(things: readonly T[], size: (thing: T) => number): readonly (readonly T[])[] {
  const runs: T[][] = [];
  let run: T[] = [];
  let bytes = 0;
  for (const thing of things) {
    const more = size(thing) + OVERHEAD;
    if (run.length > 0 && bytes + more > MESSAGE_BYTES) {
      runs.push(run);
      run = [];
      bytes = 0;
    }
    run.push(thing);
    bytes += more;
  }
  if (run.length > 0) runs.push(run);
  return runs;
}

/** What every frame of a stream says beside the entry. */
interface StreamFields {
  readonly head: Revision;
  readonly ageMs: number;
  readonly requestId: string;
}

/** The messages of a frame, whose entry is encoded already. */
export function encodeFrame(frame: LogFrame, parts: readonly Uint8Array[], stream: StreamFields): readonly Uint8Array[] {
  const { previous } = frame;
  const own = { previous, head: stream.head, ageMs: BigInt(Math.round(stream.ageMs)), requestId: stream.requestId };
  if (frame.kind === 'bookmark') {
    const { revision, digest } = frame;
    return [WatchResponse.encode(WatchResponse.create({ ...own, revision, digest, bookmark: true, last: true })).finish()];
  }
  const prefix = WatchResponse.encode(WatchResponse.create(own)).finish();
  return parts.map((part) => Buffer.concat([prefix, part]));
}
