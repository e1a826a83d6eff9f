import { randomUUID } from 'node:crypto';
import { LogWatchers } from '../../src/adapters/log/log-watchers.js';
import { sha256 } from '../../src/adapters/log/sha256.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import { Draft } from '../../src/domain/log/draft.js';
import {
  type Cursor,
  type Entry,
  type LogFrame,
  logId,
  type Proposal,
  type ProposeResult,
  type Revision,
  type Snapshot,
} from '../../src/domain/log/model.js';
import { emptyState, LogState } from '../../src/domain/log/state.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Clock } from '../../src/ports/clock.js';
import type { OwnedLog } from '../../src/ports/log/ordered-log.js';
import { FakeClock } from './fake-clock.js';

export interface FakeOrderedLogOptions {
  readonly clock?: Clock;
  readonly id?: string;
  readonly others?: () => number | undefined;
}

/** A log in memory, open from the start. */
export class FakeOrderedLog implements OwnedLog {
  readonly #clock: Clock;
  readonly #others: () => number | undefined;
  readonly #state: LogState;
  readonly #watchers: LogWatchers;
  readonly #entries = new Map<bigint, Entry>();
  #failure: unknown;
  #closed = false;

  constructor({ clock = new FakeClock(), id = randomUUID(), others = () => undefined }: FakeOrderedLogOptions = {}) {
    this.#clock = clock;
    this.#others = others;
    this.#state = new LogState(emptyState(logId(id)), clock.monotonic());
    const reader = { read: async (first: Revision) => this.#page(first) };
    this.#watchers = new LogWatchers({ state: this.#state, reader, clock });
  }

  /** The next proposal rejects with `error`, as a full disk does, and leaves no trace. */
  failNext(error: unknown = new AgentError('log.not_written', { problem: 'told to fail' })): void {
    this.#failure = error;
  }

  problems(): readonly [] {
    return [];
  }

  async open({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    this.#checkOpen();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.close();
  }

  async propose(proposal: Proposal, { signal }: CallOptions): Promise<ProposeResult> {
    signal.throwIfAborted();
    this.#checkOpen();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    const draft = new Draft(this.#state, sha256);
    const result = draft.propose(proposal, { now: this.#clock.now(), others: this.#others() });
    this.#append(draft);
    return result;
  }

  async snapshot(prefix: string, { signal }: CallOptions): Promise<Snapshot> {
    signal.throwIfAborted();
    this.#checkOpen();
    return this.#state.snapshot(prefix);
  }

  async head({ signal }: CallOptions): Promise<Cursor> {
    signal.throwIfAborted();
    this.#checkOpen();
    return this.#state.head;
  }

  newest(options: CallOptions): Promise<Cursor> {
    return this.head(options);
  }

  watch(from: Cursor, options: CallOptions): AsyncIterable<LogFrame> {
    return this.#watchers.watch(from, options);
  }

  /** One line a key: `key = value @ revision`. */
  dump(): string {
    return this.#state
      .snapshot('')
      .items.map(({ key, value, revision }) => `${key} = ${value} @ ${revision}`)
      .join('\n');
  }

  #append(draft: Draft): void {
    const minimum = this.#state.minimumAfter(draft.records);
    this.#state.append(draft.records, minimum, this.#clock.monotonic());
    for (const { entry } of draft.records) this.#entries.set(entry.revision, entry);
    for (const revision of this.#entries.keys()) {
      if (revision >= minimum) break;
      this.#entries.delete(revision);
    }
    this.#watchers.wake();
  }

  #page(first: bigint): readonly Entry[] {
    const page: Entry[] = [];
    for (let entry = this.#entries.get(first); entry !== undefined && page.length < 100; ) {
      page.push(entry);
      entry = this.#entries.get(entry.revision + 1n);
    }
    return page;
  }

  #checkOpen(): void {
    if (this.#closed) throw new AgentError('log.closed');
  }
}
