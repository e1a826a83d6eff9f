import { Pace, SLOW_SIZE } from '../../domain/log/cursor.js';
import { type Reads, visibleChanges } from '../../domain/log/filter.js';
import { type Cursor, type Revision, revision } from '../../domain/log/model.js';
import { RetainedEntries } from '../../domain/log/retention.js';
import type { Clock } from '../../ports/clock.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';

/** How much there is for nodes to read after each place: known while streams run, so that one that does not read can be told. */
export class Backlog {
  readonly #log: OrderedLog;
  readonly #reads: Reads;
  readonly #clock: Clock;
  #entries: RetainedEntries | undefined;
  #head: Revision | undefined;
  #streams = 0;
  #running: AbortController | undefined;
  /** Where what is known begins. */
  #start: Revision | undefined;

  constructor(log: OrderedLog, reads: Reads, clock: Clock) {
    this.#log = log;
    this.#reads = reads;
    this.#clock = clock;
  }

  /** A stream begins at `from`; the log is followed until what is returned has been called for each. */
  begin(from: Cursor): () => void {
    this.#streams += 1;
    // Seldom: of many streams few begin before all that came before them.
    if (this.#running === undefined || this.#start === undefined || from.revision < this.#start) this.#follow(from);
    return () => {
      this.#streams -= 1;
      if (this.#streams > 0) return;
      this.#running?.abort();
      this.#running = undefined;
    };
  }

  /** From the head when there is no cursor. */
  #follow(from: Cursor | undefined): void {
    this.#running?.abort();
    const stop = new AbortController();
    this.#running = stop;
    this.#start = from?.revision;
    this.#read(from, stop.signal).catch(() => {
      if (this.#running !== stop) return;
      this.#running = undefined;
      // The stream from there meets the same failure and reports it; the others go on.
      if (from !== undefined && this.#streams > 0) this.#follow(undefined);
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

  async #read(cursor: Cursor | undefined, signal: AbortSignal): Promise<void> {
    const from = cursor ?? (await this.#log.head({ signal }));
    this.#start = from.revision;
    const entries = new RetainedEntries(revision(from.revision + 1n));
    this.#entries = entries;
    for await (const frame of this.#log.watch(from, { signal })) {
      this.#head = frame.kind === 'entry' ? frame.entry.revision : frame.head;
      if (frame.kind === 'bookmark') continue;
      const { time, changes } = frame.entry;
      const size = visibleChanges(frame.entry, this.#reads).reduce(
        (sum, { key, value }) => sum + key.length + (value?.length ?? 0),
        0,
      );
      const seen = { time, changes: changes.length, size, requestId: undefined };
      const minimum = entries.minimumAfter([seen]);
      entries.push(seen, this.#clock.monotonic());
      entries.dropBefore(minimum);
    }
  }
}
