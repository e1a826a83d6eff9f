import { decodeRow, instructionKey, instructionPrefix, isFinished, type KeptRow } from '../../domain/dispatch/model.js';
import { InstructionTally } from '../../domain/dispatch/tally.js';
import type { Tag } from '../../domain/instruction/model.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore, StoreChange } from '../../ports/store/control-store.js';
import { PrefixView } from '../store/prefix-view.js';

export interface BookParts {
  readonly store: ControlStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** `kept` is undefined for one that was removed. */
export type BookListener = (nid: Nid, tag: Tag, kept: KeptRow | undefined) => void;

/** All instructions, from one watch over all of them, however many nodes there are. Rows change here only as the store tells. */
export class InstructionBook {
  readonly tally = new InstructionTally();
  readonly #view: PrefixView;
  readonly #rows = new Map<string, KeptRow>();
  readonly #open = new Map<Nid, Map<string, KeptRow>>();
  readonly #listeners = new Set<BookListener>();
  readonly #logger: Logger;
  #openCount = 0;

  constructor(parts: BookParts) {
    this.#logger = parts.logger;
    const changed = (changes: readonly StoreChange[]) => this.#changed(changes);
    this.#view = new PrefixView({ ...parts, prefix: instructionPrefix, changed });
  }

  start(): void {
    this.#view.start();
  }

  stop(): Promise<void> {
    return this.#view.stop();
  }

  /** Whether all were known once. */
  get hasLoaded(): boolean {
    return this.#view.hasLoaded;
  }

  /** Resolves when all were known once; waits as long as it takes. */
  loaded(options: CallOptions): Promise<void> {
    return this.#view.loaded(options);
  }

  /** Resolves when the book holds what was committed at `version`; 0: what there was. @throws AgentError `store.unavailable` after 5 s */
  reached(version: bigint, options: CallOptions): Promise<void> {
    return this.#view.reached(version, options);
  }

  get(nid: Nid, tag: Tag): KeptRow | undefined {
    return this.#rows.get(instructionKey(nid, tag));
  }

  /** Unfinished ones of a node. */
  open(nid: Nid): readonly KeptRow[] {
    return [...(this.#open.get(nid)?.values() ?? [])];
  }

  /** How many of a node are unfinished, or of all. */
  openCount(nid?: Nid): number {
    return nid === undefined ? this.#openCount : (this.#open.get(nid)?.size ?? 0);
  }

  /** When the oldest unfinished one was issued, wall clock, milliseconds; undefined without any. */
  oldestOpen(): number | undefined {
    let oldest: number | undefined;
    for (const rows of this.#open.values()) {
      for (const { row } of rows.values()) if (oldest === undefined || row.issuedAt < oldest) oldest = row.issuedAt;
    }
    return oldest;
  }

  /** Nodes that have unfinished ones. */
  nodes(): Iterable<Nid> {
    return this.#open.keys();
  }

  rows(): Iterable<KeptRow> {
    return this.#rows.values();
  }

  onChange(listener: BookListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #changed(changes: readonly StoreChange[]): void {
    for (const { key, value, version } of changes) {
      const former = this.#rows.get(key);
      const kept = value === undefined ? undefined : { row: decodeRow(value), version };
      const row = kept?.row ?? former?.row;
      if (row === undefined) continue;
      if (kept === undefined) this.#rows.delete(key);
      else this.#rows.set(key, kept);
      this.tally.note(former?.row, kept?.row);
      this.#index(key, row.nid, kept);
      this.#tell(row.nid, row.tag, kept);
    }
  }

  #index(key: string, nid: Nid, kept: KeptRow | undefined): void {
    const open = this.#open.get(nid) ?? new Map<string, KeptRow>();
    const before = open.size;
    if (kept === undefined || isFinished(kept.row)) open.delete(key);
    else open.set(key, kept);
    this.#openCount += open.size - before;
    if (open.size === 0) this.#open.delete(nid);
    else this.#open.set(nid, open);
  }

  #tell(nid: Nid, tag: Tag, kept: KeptRow | undefined): void {
    for (const listener of this.#listeners) {
      try {
        listener(nid, tag, kept);
      } catch (error) {
        this.#logger.error('a reader of the instructions failed', { error });
      }
    }
  }
}
