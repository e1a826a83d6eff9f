import { type InstructionKey, keyText } from '../../src/domain/instruction/model.js';
import { isFinished, type Row } from '../../src/domain/instruction/row.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { Epoch } from '../../src/domain/link/model.js';
import type { Generation } from '../../src/domain/vip/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { StatusProblem } from '../../src/ports/driving/operations.js';
import type {
  Journal,
  JournalChange,
  JournalEntry,
  JournalFacts,
  OpenedJournal,
  StoredReply,
  TombstoneLimits,
} from '../../src/ports/instruction/journal.js';

interface Stored {
  row: Row;
  payload?: string | undefined;
  reply?: StoredReply | undefined;
  setAside?: StoredReply;
}

/** What outlives a process: several journals may be opened on it, one after the other. */
export class FakeJournalDisk {
  readonly id: string;
  readonly rows = new Map<string, Stored>();
  readonly epochs = new Map<string, Epoch>();
  readonly vips = new Map<string, Generation>();
  counter = 0n;
  full = false;

  constructor(id = 'journal-1') {
    this.id = id;
  }

  /** `tag type state attempt outcome`, one a line, in the order of their receipt. */
  dump(): string {
    return [...this.rows.values()]
      .map(({ row }) => [row.tag, row.type, row.state, row.attempt, row.outcome ?? '-'].join(' '))
      .join('\n');
  }
}

/** A journal in memory. A process that is cut off it (`cut`) writes nothing more, as after kill -9. */
export class FakeJournal implements Journal {
  readonly #disk: FakeJournalDisk;
  #state: 'new' | 'open' | 'closed' = 'new';
  #cut: ((changes: readonly JournalChange[]) => 'before' | 'after' | undefined) | undefined;
  #dead = false;

  constructor(disk = new FakeJournalDisk()) {
    this.#disk = disk;
  }

  /** `where` says whether the process dies before or after the commit of these changes. What dies never settles. */
  cut(where: (changes: readonly JournalChange[]) => 'before' | 'after' | undefined): void {
    this.#cut = where;
  }

  get isDead(): boolean {
    return this.#dead;
  }

  async open({ signal }: CallOptions): Promise<OpenedJournal> {
    signal.throwIfAborted();
    if (this.#state === 'closed' || this.#disk.full) throw this.#unavailable();
    this.#state = 'open';
    const entries = [...this.#disk.rows.values()].map(entryOf);
    return { live: entries.filter(({ row, hasReply }) => !isFinished(row) || hasReply), epochs: new Map(this.#disk.epochs) };
  }

  facts(): JournalFacts | undefined {
    return this.#state === 'open' ? { id: this.#disk.id, counter: this.#disk.counter } : undefined;
  }

  async commit(changes: readonly JournalChange[], { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    const cut = this.#cut?.(changes);
    if (cut === 'before') this.#dead = true;
    await this.#alive();
    for (const change of changes) this.#apply(change);
    this.#disk.counter += 1n;
    if (cut === 'after') this.#dead = true;
    await this.#alive();
  }

  async find(keys: readonly InstructionKey[], { signal }: CallOptions): Promise<readonly (JournalEntry | undefined)[]> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    return keys.map((key) => {
      const stored = this.#disk.rows.get(keyText(key));
      return stored === undefined ? undefined : entryOf(stored);
    });
  }

  async reply(key: InstructionKey, { signal }: CallOptions): Promise<StoredReply | undefined> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    return this.#disk.rows.get(keyText(key))?.reply;
  }

  async setAside(key: InstructionKey, { signal }: CallOptions): Promise<StoredReply | undefined> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    return this.#disk.rows.get(keyText(key))?.setAside;
  }

  async payload(key: InstructionKey, { signal }: CallOptions): Promise<string | undefined> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    return this.#disk.rows.get(keyText(key))?.payload;
  }

  async vipGeneration(fleet: string, { signal }: CallOptions): Promise<Generation> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    return this.#disk.vips.get(fleet) ?? 0n;
  }

  async prune({ receivedBefore, expiredBefore, most }: TombstoneLimits, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await this.#alive();
    this.#check();
    const tombstones = [...this.#disk.rows].filter(([, { row, reply }]) => isFinished(row) && reply === undefined);
    const old = tombstones.filter(
      ([, { row }]) => row.receivedAt < receivedBefore && (row.expiresAt === undefined || row.expiresAt < expiredBefore),
    );
    const excess = tombstones.slice(0, Math.max(0, tombstones.length - most));
    for (const [id] of [...old, ...excess]) this.#disk.rows.delete(id);
  }

  async close(): Promise<void> {
    this.#state = 'closed';
  }

  problems(): readonly StatusProblem[] {
    if (!this.#disk.full) return [];
    return [{ subject: 'journal', reason: 'no space left on device', since: undefined, remedy: 'free some space' }];
  }

  #apply(change: JournalChange): void {
    switch (change.change) {
      case 'row': {
        const id = keyText(change.row);
        const known = this.#disk.rows.get(id);
        if (known === undefined) this.#disk.rows.set(id, { row: change.row });
        else known.row = change.row;
        return;
      }
      case 'payload': {
        const stored = this.#disk.rows.get(keyText(change.key));
        if (stored !== undefined) stored.payload = change.jsonB64;
        return;
      }
      case 'reply': {
        const stored = this.#disk.rows.get(keyText(change.key));
        if (stored !== undefined) stored.reply = change.reply;
        return;
      }
      case 'set_aside': {
        const stored = this.#disk.rows.get(keyText(change.key));
        if (stored !== undefined) stored.setAside = change.reply;
        return;
      }
      case 'remove':
        this.#disk.rows.delete(keyText(change.key));
        return;
      case 'epoch':
        this.#disk.epochs.set(change.fleet, change.epoch);
        return;
      case 'vip':
        this.#disk.vips.set(change.fleet, change.generation);
    }
  }

  #check(): void {
    if (this.#state !== 'open' || this.#disk.full) throw this.#unavailable();
  }

  #unavailable(): AgentError {
    return new AgentError('journal.unavailable', { problem: this.#disk.full ? 'no space left on device' : 'it is not open' });
  }

  /** Whoever waits for a dead process waits for ever. */
  #alive(): Promise<void> {
    return this.#dead ? new Promise(() => {}) : Promise.resolve();
  }
}

function entryOf({ row, payload, reply }: Stored): JournalEntry {
  const replyBytes = reply === undefined || reply === 'none' ? 0 : reply.type.length + reply.jsonB64.length;
  return { row, hasPayload: payload !== undefined, hasReply: reply !== undefined, replyBytes };
}
