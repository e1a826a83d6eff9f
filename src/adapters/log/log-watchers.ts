import { AgentError } from '../../domain/kernel/errors.js';
import { changedPast, Pace, refuseCursor, SLOW_SIZE } from '../../domain/log/cursor.js';
import { type Cursor, type Entry, type LogFrame, type Revision, revision } from '../../domain/log/model.js';
import type { LogState } from '../../domain/log/state.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';

export const BOOKMARK_MS = 5_000;

/** A reader that never waits gives way to others after so many entries: about a millisecond. */
const ENTRIES_PER_TURN = 256;

/** So many watchers are woken in one turn of the event loop: whoever applied something has the answer before the thousandth has the entry. */
const WOKEN_PER_TURN = 64;

/** Where entries that left the ring are read. */
export interface EntryReader {
  /** Some entries from `first` on, verified, in order, at least one if it is retained. */
  read(first: Revision): Promise<readonly Entry[]>;
}

export interface WatchersOptions {
  readonly state: LogState;
  readonly reader: EntryReader;
  readonly clock: Clock;
  /** How long ago the state was last known to be current, milliseconds. Without it, it always is: its holder is the only writer. */
  readonly age?: () => number;
}

/** All watchers of one log. None has a queue: each is a cursor into the shared ring, or into the store behind it. */
export class LogWatchers {
  readonly #state: LogState;
  readonly #reader: EntryReader;
  readonly #clock: Clock;
  readonly #age: () => number;
  readonly #running = new Set<Watcher>();
  #waking = false;
  /** Something has changed since the wakes under way began: who was woken first may have missed it. */
  #again = false;
  #closed = false;

  constructor({ state, reader, clock, age = () => 0 }: WatchersOptions) {
    this.#state = state;
    this.#reader = reader;
    this.#clock = clock;
    this.#age = age;
  }

  /** To be called after each change of the state. */
  wake(): void {
    if (this.#waking) this.#again = true;
    else void this.#wakeAll();
  }

  /** Ends all of them with `log.closed`. */
  close(): void {
    this.#closed = true;
    for (const watcher of this.#running) watcher.end();
  }

  /** As `OrderedLog.watch`. */
  async *watch(from: Cursor, { signal }: CallOptions): AsyncGenerator<LogFrame, void, undefined> {
    const refusal = this.#closed ? new AgentError('log.closed') : refuseCursor(from, this.#state);
    if (refusal !== undefined) throw refusal;
    const watcher = new Watcher(from, this.#clock, signal);
    this.#running.add(watcher);
    try {
      while (!signal.aborted) {
        this.#check(watcher);
        const frame = watcher.dueBookmark(this.#state.revision, this.#age()) ?? (await this.#next(watcher));
        if (frame !== undefined && !signal.aborted) yield frame;
      }
    } finally {
      this.#running.delete(watcher);
      watcher.end();
    }
  }

  async #wakeAll(): Promise<void> {
    this.#waking = true;
    do {
      this.#again = false;
      for (const [index, watcher] of [...this.#running].entries()) {
        if (index > 0 && index % WOKEN_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
        watcher.wake();
      }
    } while (this.#again);
    this.#waking = false;
  }

  #check(watcher: Watcher): void {
    if (this.#closed) throw new AgentError('log.closed');
    const { revision: at } = watcher.at;
    const { minimum } = this.#state;
    const overdue = watcher.pace.tooSlow(this.#state.behindSince(at, SLOW_SIZE), this.#clock.monotonic());
    if (!overdue && at + 1n >= minimum) return;
    const problem = `the reader stands at revision ${at} of ${this.#state.revision}, entries are kept from ${minimum}`;
    throw new AgentError('log.slow', { problem, revision: String(at), minimum: String(minimum) });
  }

  /** The next entry, or undefined when there was none and something has happened since. */
  async #next(watcher: Watcher): Promise<LogFrame | undefined> {
    if (watcher.at.revision === this.#state.revision) {
      await watcher.wait();
      return undefined;
    }
    await watcher.giveWay();
    const wanted = revision(watcher.at.revision + 1n);
    const entry = this.#state.recent(wanted) ?? watcher.fromPage(wanted);
    if (entry !== undefined) return watcher.take(entry);
    const page = await this.#reader.read(wanted);
    // Retention may have dropped it while it was being read; then the check says so.
    if (page[0]?.revision !== wanted && wanted >= this.#state.minimum)
      throw new AgentError('log.corrupt', { problem: 'an entry is missing', revision: String(wanted) });
    watcher.turn(page);
    return undefined;
  }
}

/** One reader: its place, and why it may go on. */
class Watcher {
  readonly pace: Pace;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #ended = new AbortController();
  readonly #onAbort = () => this.end();
  #at: Cursor;
  #started = false;
  #page: readonly Entry[] = [];
  #bookmarkDue = false;
  #inTurn = 0;
  #wake: (() => void) | undefined;

  constructor(from: Cursor, clock: Clock, signal: AbortSignal) {
    this.#at = from;
    this.#clock = clock;
    this.#signal = signal;
    this.pace = new Pace(clock.monotonic());
    signal.addEventListener('abort', this.#onAbort);
    this.#armBookmark();
  }

  get at(): Cursor {
    return this.#at;
  }

  wake(): void {
    this.#wake?.();
  }

  /** Resolves on the next wake. Nothing may be awaited between looking at the state and this call. */
  wait(): Promise<void> {
    this.#inTurn = 0;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async giveWay(): Promise<void> {
    this.#inTurn += 1;
    if (this.#inTurn % ENTRIES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  /** The page of entries from the store that is read next; the one before is finished. */
  turn(page: readonly Entry[]): void {
    this.#page = page;
  }

  fromPage(wanted: Revision): Entry | undefined {
    const first = this.#page[0]?.revision;
    return first === undefined || wanted < first ? undefined : this.#page[Number(wanted - first)];
  }

  /** The first entry proves the cursor: it names the digest that the cursor must have (engine.md E3). Later ones, the chain. */
  take(entry: Entry): LogFrame {
    const previous = this.#at;
    if (entry.previousDigest !== previous.digest) {
      if (!this.#started) throw changedPast(previous, entry.previousDigest);
      throw new AgentError('log.corrupt', { problem: 'the chain of digests is broken', revision: String(entry.revision) });
    }
    this.#started = true;
    this.#at = { logId: previous.logId, revision: entry.revision, digest: entry.digest };
    return { kind: 'entry', previous: previous.revision, entry };
  }

  dueBookmark(head: Revision, ageMs: number): LogFrame | undefined {
    if (!this.#bookmarkDue) return undefined;
    this.#bookmarkDue = false;
    this.#armBookmark();
    const { revision, digest } = this.#at;
    return { kind: 'bookmark', previous: revision, revision, digest, head, ageMs };
  }

  /** No timer is left, also of a watcher that is never read again; one that waits goes on, and sees why it ends. */
  end(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#ended.abort();
    this.wake();
  }

  #armBookmark(): void {
    const due = () => {
      this.#bookmarkDue = true;
      this.wake();
    };
    this.#clock.sleep(BOOKMARK_MS, { signal: this.#ended.signal }).then(due, () => {});
  }
}
