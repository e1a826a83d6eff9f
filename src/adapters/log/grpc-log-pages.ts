import { createHash } from 'node:crypto';
import { type Reads, visibleItems } from '../../domain/log/filter.js';
import type { Snapshot, SnapshotItem } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import { SnapshotResponse } from '../generated/holdfast/log/v1/log.js';
import { inMessages } from './grpc-log-encoding.js';
import { itemText } from './grpc-log-mapping.js';

/** Nobody asks for longer: what is kept is as large as the state itself. */
const KEEP_MS = 60_000;

const NEVER = new AbortController().signal;

/** A snapshot in messages, each of which is encoded once for all who ask. */
export interface PageSet {
  readonly snapshot: Snapshot;
  readonly pages: readonly Uint8Array[];
}

interface SnapshotPagesParts {
  readonly log: OrderedLog;
  readonly reads: Reads;
  readonly clock: Clock;
  /** Between the beginnings of two builds, milliseconds. */
  readonly everyMs: number;
}

/**
 * What nodes see of the whole state, built at most once a second and shared (engine.md E13). Whoever asks gets one that was begun after
 * the question, unless nothing has changed since an older one.
 */
export class SnapshotPages {
  readonly #parts: SnapshotPagesParts;
  #newest: PageSet | undefined;
  /** Not begun: whoever comes before it is can share it. */
  #next: Promise<PageSet> | undefined;
  #begunAt = Number.NEGATIVE_INFINITY;
  #builds = 0;
  #forgetting: AbortController | undefined;

  constructor(parts: SnapshotPagesParts) {
    this.#parts = parts;
  }

  get builds(): number {
    return this.#builds;
  }

  /** @throws what the log throws */
  async all(options: CallOptions): Promise<PageSet> {
    this.#forgetLater();
    const current = await this.#current(options);
    if (current !== undefined) return current;
    this.#next ??= this.#build();
    return this.#next;
  }

  /** Of the keys that begin so. */
  async beginning(prefix: string, options: CallOptions): Promise<PageSet> {
    if (prefix === '') return this.all(options);
    const { snapshot } = await this.all(options);
    return encodePages({ ...snapshot, items: snapshot.items.filter(({ key }) => key.startsWith(prefix)) });
  }

  /** What is kept is let go of. */
  stop(): void {
    this.#forgetting?.abort();
    this.#newest = undefined;
  }

  #forgetLater(): void {
    this.#forgetting?.abort();
    const forgetting = new AbortController();
    this.#forgetting = forgetting;
    this.#parts.clock.sleep(KEEP_MS, { signal: forgetting.signal }).then(
      () => {
        this.#newest = undefined;
      },
      () => {},
    );
  }

  /** The newest one, if nothing has changed since. */
  async #current(options: CallOptions): Promise<PageSet | undefined> {
    const { logId, digest } = await this.#parts.log.head(options);
    const cursor = this.#newest?.snapshot.cursor;
    return cursor?.logId === logId && cursor.digest === digest ? this.#newest : undefined;
  }

  async #build(): Promise<PageSet> {
    const { log, reads, clock } = this.#parts;
    await this.#turn();
    const current = await this.#current({ signal: NEVER });
    if (current !== undefined) return current;
    this.#begunAt = clock.monotonic();
    this.#builds += 1;
    const { cursor, time, items } = await log.snapshot('', { signal: NEVER });
    const set = await encodePages({ cursor, time, items: visibleItems(items, reads) });
    this.#newest = set;
    return set;
  }

  /** Who asks from now on is not served by this build. */
  async #turn(): Promise<void> {
    const { clock, everyMs } = this.#parts;
    const wait = this.#begunAt + everyMs - clock.monotonic();
    // Also when there is nothing to wait for, the build is shared before it begins.
    await (wait > 0 ? clock.sleep(wait, { signal: NEVER }) : undefined);
    this.#next = undefined;
  }
}

async function encodePages(snapshot: Snapshot): Promise<PageSet> {
  const hash = createHash('sha256');
  const runs = inMessages(snapshot.items, ({ key, value }) => key.length + Buffer.byteLength(value));
  const pages: Uint8Array[] = [];
  for (const run of runs) {
    for (const item of run) hash.update(itemText(item));
    pages.push(SnapshotResponse.encode(page(run)).finish());
    // A megabyte takes about 10 ms: others have their turn in between.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { cursor, time, items } = snapshot;
  const end = {
    last: true,
    cursor: { ...cursor },
    timeMs: BigInt(time),
    count: BigInt(items.length),
    digest: hash.digest('hex'),
  };
  pages.push(SnapshotResponse.encode(SnapshotResponse.create(end)).finish());
  return { snapshot, pages };
}

function page(items: readonly SnapshotItem[]): SnapshotResponse {
  return SnapshotResponse.create({ items: items.map(({ key, value, revision }) => ({ key, value, revision })) });
}
