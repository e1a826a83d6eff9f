import type { Cursor, Entry, LogKey, Snapshot } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { StoredView, ViewBinding, ViewChange, ViewStore } from '../../ports/log/view-store.js';
import type { Logger } from '../../ports/logger.js';
import type { ProblemSource } from '../../ports/node/problem-source.js';
import { messageOf } from '../agent/managed-subsystem.js';
import { ReconcileLoop } from '../agent/reconcile-loop.js';

/** At most one commit a second (engine.md J1). */
const COMMIT_GAP_MS = 1_000;
/** A view that only was confirmed is stored again after this: a third of what makes it stale, and no write a second for nothing. */
const CONFIRM_GAP_MS = 10_000;
/** Nothing happens of itself; this is how often the loop looks nevertheless. */
const LOOK_AGAIN_MS = 60_000;

export interface ViewKeeperParts {
  readonly store: ViewStore;
  readonly binding: ViewBinding;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/** Where a view stands, without its content. */
type Place = Omit<StoredView, 'items'>;

/**
 * Keeps what a consumer holds on disk, in batches: what it is told is stored within a second or so, cursor and content together. While
 * the disk fails it gathers, by key, and tries again.
 */
export class ViewKeeper implements ProblemSource {
  readonly #parts: ViewKeeperParts;
  readonly #loop: ReconcileLoop;
  #opened = false;
  /** Called when what is stored can no longer be brought up: only a whole view helps. */
  #onLost: () => void = () => {};
  #stored: Place | undefined;
  /** To be stored first. */
  #whole: StoredView | undefined;
  #changes = new Map<LogKey, ViewChange>();
  /** Where the changes lead to. */
  #end: Place | undefined;

  constructor(parts: ViewKeeperParts) {
    const { clock, random, logger } = parts;
    this.#parts = parts;
    this.#loop = new ReconcileLoop({
      ...{ name: 'view', run: (signal: AbortSignal) => this.#store({ signal }), clock, random, logger },
      leastGapMs: COMMIT_GAP_MS,
      greatestGapMs: LOOK_AGAIN_MS,
    });
  }

  /** What was stored; undefined when there is nothing, or the disk lets nothing be read, which is a problem from then on. */
  async start(onLost: () => void, options: CallOptions): Promise<StoredView | undefined> {
    this.#onLost = onLost;
    const view = await this.#open(options).catch((error: unknown) => {
      options.signal.throwIfAborted();
      this.#parts.logger.warn('the stored view cannot be read', { error });
      return undefined;
    });
    this.#loop.start();
    return view;
  }

  /** What is known by now is stored, unless the disk fails. Safe before `start` and twice. */
  async stop(options: CallOptions): Promise<void> {
    await this.#loop.stop();
    if (this.#opened && this.#loop.status().error === undefined) await this.#store(options).catch(() => {});
    this.#opened = false;
    await this.#parts.store.close();
  }

  /** Another view in place of the former one. */
  replaced(snapshot: Snapshot, currentAt: number): void {
    this.#whole = { ...snapshot, currentAt };
    this.#changes = new Map();
    this.#end = undefined;
    this.#loop.markDirty();
  }

  changed({ revision, time, changes }: Entry, cursor: Cursor, currentAt: number): void {
    for (const { key, value } of changes) this.#changes.set(key, { key, value, revision });
    this.#moveTo({ cursor, time, currentAt });
  }

  /** Nothing changed up to `cursor`. */
  passed(cursor: Cursor, currentAt: number): void {
    const { time } = this.#end ?? this.#whole ?? this.#stored ?? { time: 0 };
    this.#moveTo({ cursor, time, currentAt });
  }

  problems(): readonly StatusProblem[] {
    const { error } = this.#loop.status();
    if (error === undefined) return [];
    const reason = `the view of the log cannot be stored: ${messageOf(error.error)}`;
    const remedy = 'free disk space or mend the disk; traffic goes on, but a restart needs the control plane';
    return [{ subject: 'log', reason, since: error.since, remedy }];
  }

  #moveTo(end: Place): void {
    this.#end = end;
    this.#loop.markDirty();
  }

  async #open(options: CallOptions): Promise<StoredView | undefined> {
    const { store, binding, logger } = this.#parts;
    const { view, dropped } = await store.open(binding, options);
    this.#opened = true;
    this.#stored = view;
    if (dropped !== undefined) logger.warn('the stored view was dropped', { reason: dropped });
    return view;
  }

  async #store(options: CallOptions): Promise<void> {
    if (!this.#opened) {
      await this.#open(options);
      // What lies there is older than what is held by now.
      if (this.#whole === undefined) this.#lose();
    }
    await this.#storeWhole(options);
    await this.#storeChanges(options);
  }

  async #storeWhole(options: CallOptions): Promise<void> {
    const whole = this.#whole;
    if (whole === undefined) return;
    await this.#parts.store.replace(whole, options);
    this.#stored = whole;
    // Another may have come meanwhile.
    if (this.#whole === whole) this.#whole = undefined;
  }

  async #storeChanges(options: CallOptions): Promise<void> {
    const [stored, end, changes] = [this.#stored, this.#end, this.#changes];
    if (stored === undefined || end === undefined || this.#whole !== undefined) return;
    const moved = end.cursor.digest !== stored.cursor.digest || changes.size > 0;
    if (!moved && end.currentAt - stored.currentAt < CONFIRM_GAP_MS) return;
    this.#changes = new Map();
    try {
      const batch = { ...end, previous: stored.cursor, changes: [...changes.values()] };
      if (!(await this.#parts.store.append(batch, options))) this.#lose();
      else this.#stored = end;
    } catch (error) {
      // Newer ones of the same key stand; those of a view that was replaced meanwhile are nobody's.
      if (this.#whole === undefined) this.#changes = new Map([...changes, ...this.#changes]);
      throw error;
    }
  }

  #lose(): void {
    this.#stored = undefined;
    this.#end = undefined;
    this.#changes = new Map();
    this.#onLost();
  }
}
