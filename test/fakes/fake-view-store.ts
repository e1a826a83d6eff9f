import { AgentError } from '../../src/domain/kernel/errors.js';
import type { LogKey, SnapshotItem } from '../../src/domain/log/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { OpenedView, StoredView, ViewBatch, ViewBinding, ViewStore } from '../../src/ports/log/view-store.js';

/** A file in memory that outlives the store. */
export interface FakeViewFile {
  binding?: string;
  view?: StoredView;
}

/** A view in memory. */
export class FakeViewStore implements ViewStore {
  readonly #file: FakeViewFile;
  #binding: string | undefined;
  #failures = 0;
  #commits = 0;

  constructor(file: FakeViewFile = {}) {
    this.#file = file;
  }

  /** The next calls reject, as on a full disk, and change nothing. */
  failNext(count = 1): void {
    this.#failures = count;
  }

  /** As if the file had been found damaged. */
  lose(): void {
    delete this.#file.view;
  }

  /** How often something was stored. */
  get commits(): number {
    return this.#commits;
  }

  async open(binding: ViewBinding, { signal }: CallOptions): Promise<OpenedView> {
    signal.throwIfAborted();
    this.#fail();
    this.#binding = `${binding.fleet} ${binding.nid} ${binding.registration}`;
    const { binding: stored, view } = this.#file;
    this.#file.binding = this.#binding;
    if (stored === undefined || stored === this.#binding) return { view, dropped: undefined };
    delete this.#file.view;
    return { view: undefined, dropped: 'it is of another fleet, node or registration' };
  }

  async replace(view: StoredView, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    this.#fail();
    this.#file.view = { ...view, items: sorted(view.items) };
    this.#commits += 1;
  }

  async append({ previous, changes, ...rest }: ViewBatch, { signal }: CallOptions): Promise<boolean> {
    signal.throwIfAborted();
    this.#fail();
    const { view } = this.#file;
    if (view === undefined || view.cursor.digest !== previous.digest || view.cursor.logId !== previous.logId) return false;
    const items = new Map<LogKey, SnapshotItem>(view.items.map((item) => [item.key, item]));
    for (const { key, value, revision } of changes) {
      if (value === null) items.delete(key);
      else items.set(key, { key, value, revision });
    }
    this.#file.view = { ...rest, items: sorted([...items.values()]) };
    this.#commits += 1;
    return true;
  }

  async close(): Promise<void> {
    this.#binding = undefined;
  }

  /** `revision: key=value@revision …` */
  dump(): string {
    const { view } = this.#file;
    if (view === undefined) return 'nothing';
    return [`${view.cursor.revision}:`, ...view.items.map(({ key, value, revision }) => `${key}=${value}@${revision}`)].join(' ');
  }

  #fail(): void {
    if (this.#failures === 0) return;
    this.#failures -= 1;
    throw new AgentError('log.view_not_written', { problem: 'told to fail' });
  }
}

function sorted(items: readonly SnapshotItem[]): readonly SnapshotItem[] {
  return items.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}
