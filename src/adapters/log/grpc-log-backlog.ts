import { Pace, SLOW_SIZE } from '../../domain/log/cursor.js';
import { type Revision, revision } from '../../domain/log/model.js';
import { RetainedEntries } from '../../domain/log/retention.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { EntryEncoder } from './grpc-log-encoding.js';

/** How much there is for nodes to read after each place: known while streams run, so that one that does not read can be told. */
export class Backlog {
  readonly #log: OrderedLog;
  readonly #encoder: EntryEncoder;
  readonly #clock: Clock;
  #entries: RetainedEntries | undefined;
  #head: Revision | undefined;
  #streams = 0;
  #running: AbortController | undefined;

  constructor(log: OrderedLog, encoder: EntryEncoder, clock: Clock) {
    this.#log = log;
    this.#encoder = encoder;
    this.#clock = clock;
  }

  /** A stream has begun; the log is followed until what is returned has been called for each. */
  begin(): () => void {
    this.#streams += 1;
    if (this.#running === undefined) this.#follow();
    return () => {
      this.#streams -= 1;
      if (this.#streams > 0) return;
      this.#running?.abort();
      this.#running = undefined;
    };
  }

  #follow(): void {
    const stop = new AbortController();
    this.#running = stop;
    this.#read(stop.signal)
      // The streams meet the same failure and report it; the next one to begin follows anew.
      .catch(() => {})
      .finally(() => {
        if (this.#running === stop) this.#running = undefined;
      });
  }

  /** The newest revision that was seen. */
  get head(): Revision | undefined {
    return this.#head;
  }

  /** How one reader keeps up, asked while it does not read. */
  paceOf(place: () => Revision): () => boolean {
    const pace = new Pace(this.#clock.monotonic());
    return () => pace.tooSlow(this.#entries?.behindSince(place(), SLOW_SIZE), this.#clock.monotonic());
  }

  async #read(signal: AbortSignal): Promise<void> {
    const from = await this.#log.head({ signal });
    const entries = new RetainedEntries(revision(from.revision + 1n));
    this.#entries = entries;
    for await (const frame of this.#log.watch(from, { signal })) {
      this.#head = frame.kind === 'entry' ? frame.entry.revision : frame.head;
      if (frame.kind === 'bookmark') continue;
      const { time, changes } = frame.entry;
      const seen = { time, changes: changes.length, size: this.#encoder.encode(frame.entry).bytes, requestId: undefined };
      const minimum = entries.minimumAfter([seen]);
      entries.push(seen, this.#clock.monotonic());
      entries.dropBefore(minimum);
    }
  }
}
