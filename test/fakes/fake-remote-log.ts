import { AgentError } from '../../src/domain/kernel/errors.js';
import { FilteredStream, visibleChanges, visibleItems } from '../../src/domain/log/filter.js';
import type { Cursor, LogFrame, Proposal, ProposeResult, Snapshot } from '../../src/domain/log/model.js';
import { nodeReads } from '../../src/domain/log/visibility.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { OrderedLog } from '../../src/ports/log/ordered-log.js';
import type { FakeOrderedLog } from './fake-ordered-log.js';

/** A control plane's log as a node sees it over a link that can be cut. What stands behind it can be replaced. */
export class FakeRemoteLog implements OrderedLog {
  inner: FakeOrderedLog;
  #down: AgentError | undefined;
  #ageMs = 0;
  readonly #links = new Set<(error: AgentError) => void>();
  #snapshots = 0;

  constructor(inner: FakeOrderedLog) {
    this.inner = inner;
  }

  /** Every stream ends with `error`; new ones can be opened. */
  cut(error = new AgentError('link.unreachable', { problem: 'told to' })): void {
    for (const end of [...this.#links]) end(error);
  }

  /** Nothing can be reached until `up`. */
  down(error = new AgentError('link.unreachable', { problem: 'told to' })): void {
    this.#down = error;
    this.cut(error);
  }

  up(): void {
    this.#down = undefined;
  }

  /** What bookmarks say of the age of the server's own store from now on. */
  aged(ageMs: number): void {
    this.#ageMs = ageMs;
  }

  get streams(): number {
    return this.#links.size;
  }

  get snapshots(): number {
    return this.#snapshots;
  }

  async propose(proposal: Proposal, options: CallOptions): Promise<ProposeResult> {
    this.#reach();
    return this.inner.propose(proposal, options);
  }

  async head(options: CallOptions): Promise<Cursor> {
    this.#reach();
    return this.inner.head(options);
  }

  async snapshot(prefix: string, options: CallOptions): Promise<Snapshot> {
    this.#reach();
    this.#snapshots += 1;
    const snapshot = await this.inner.snapshot(prefix, options);
    return { ...snapshot, items: visibleItems(snapshot.items, nodeReads) };
  }

  async *watch(from: Cursor, { signal }: CallOptions): AsyncGenerator<LogFrame, void, undefined> {
    this.#reach();
    const stream = new FilteredStream(from);
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => {});
    const stop = new AbortController();
    const end = () => stop.abort();
    signal.addEventListener('abort', end, { once: true });
    this.#links.add(broken.reject);
    const frames = this.inner.watch(from, { signal: stop.signal })[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await Promise.race([frames.next(), broken.promise]);
        if (next.done === true) return;
        const frame = next.value.kind === 'bookmark' ? { ...next.value, ageMs: this.#ageMs } : next.value;
        const sent = stream.take(frame, frame.kind === 'entry' ? visibleChanges(frame.entry, nodeReads) : []);
        if (sent !== undefined) yield sent;
      }
    } finally {
      this.#links.delete(broken.reject);
      signal.removeEventListener('abort', end);
      stop.abort();
    }
  }

  #reach(): void {
    if (this.#down !== undefined) throw this.#down;
  }
}
