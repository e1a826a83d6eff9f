import type { Scheduling } from '../../domain/instruction/kinds/kind.js';
import { Lanes } from '../../domain/instruction/lanes.js';
import type { Answer } from '../../domain/instruction/model.js';
import { interruptedText } from '../../domain/instruction/restart.js';
import { finishedRow, type Outcome, type Row, startedRow } from '../../domain/instruction/row.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';
import type { TaskId, TaskRunner } from '../../ports/instruction/task-runner.js';
import type { Logger } from '../../ports/logger.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { LinkSession } from '../link/link-session.js';
import type { EffectContext, EffectResult } from './effects.js';
import { keyOf } from './results.js';
import { CANCELLED_RUNNING } from './script-effect.js';
import { taskIdOf } from './task-id.js';

/** An instruction between its acceptance and its result. */
export interface Item {
  readonly id: string;
  /** As the journal has it; of a read only in memory. */
  row: Row;
  /** The deadline is for what runs in this process: a runner keeps its own. */
  readonly scheduling: Scheduling;
  readonly run: (context: EffectContext) => Promise<EffectResult>;
  /** Of its payload. */
  readonly bytes: number;
  /** Of the policy, for the audit log. */
  readonly rule: string;
  /** Boot-time clock: not started afterwards, also when the machine has slept meanwhile. */
  readonly startBefore: number;
  /** Whether the server said so, or it is only too late for an older one. */
  readonly expires: boolean;
  readonly failure: (text: string) => Answer;
  /** When and on which stream it came, boot-time clock; undefined for one of an earlier process. */
  readonly received: { readonly at: number; readonly session: LinkSession } | undefined;
}

export interface Ended {
  readonly outcome: Outcome;
  readonly result: EffectResult;
}

/** What the workbench asks of the engine. */
export interface Records {
  /** Durable when it resolves; nothing at all for a read. @throws AgentError `journal.unavailable` */
  save(item: Item): Promise<void>;
  /** The end of it: resolves when its result is durable. Does not throw. */
  finished(item: Item, ended: Ended): Promise<void>;
}

export interface WorkbenchParts {
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  /** Milliseconds since the machine started, counting while it sleeps. */
  readonly bootTime: () => number;
  readonly logger: Logger;
  readonly records: Records;
  readonly sha256: (text: string) => string;
}

/** What an item is doing now. */
interface Running {
  readonly abort: AbortController;
  cancelled: boolean;
}

/** Instructions that wait and run: lanes, slots, expiry, deadlines, cancellation. */
export class Workbench {
  readonly #parts: WorkbenchParts;
  readonly #lanes = new Lanes();
  readonly #items = new Map<string, Item>();
  readonly #running = new Map<string, Running>();
  readonly #waits = new Map<string, AbortController>();
  /** Those that gave way, by the newer one whose result is theirs. */
  readonly #followers = new Map<string, readonly Item[]>();
  readonly #stop = new AbortController();
  readonly #tasks = new Set<Promise<void>>();

  constructor(parts: WorkbenchParts) {
    this.#parts = parts;
  }

  get counts(): { readonly waiting: number; readonly running: number } {
    return { waiting: this.#lanes.waiting, running: this.#lanes.running };
  }

  item(id: string): Item | undefined {
    return this.#items.get(id);
  }

  /** Each item, and what it waits for; undefined when it runs. */
  list(): readonly { readonly item: Item; readonly waitsFor: string | undefined }[] {
    return [...this.#items.values()].map((item) => {
      return { item, waitsFor: this.#lanes.isWaiting(item.id) ? this.#lanes.waitsFor(item.id) : undefined };
    });
  }

  /** In order of arrival; it starts when it may. One that finds no room ends at once. */
  add(item: Item): void {
    const { lanes, slot } = item.scheduling;
    const queued = { id: item.id, lanes, slot, bytes: item.bytes };
    const full = this.#lanes.add(queued);
    this.#items.set(item.id, item);
    if (full !== undefined) this.#track(this.#end(item, refused(item, full)));
    else this.#armExpiry(item);
    if (full === undefined && item.scheduling.newestOnly === true) this.#supersede(item.id, this.#lanes.waitingBeside(queued));
    this.#pump();
  }

  /** Another process has begun it, and its `run` only waits for the end. It has its lanes from here on, before anything that is added. */
  adopt(item: Item): void {
    const { lanes, slot } = item.scheduling;
    this.#lanes.addRunning({ id: item.id, lanes, slot, bytes: 0 });
    this.#items.set(item.id, item);
    this.#track(this.#supervise(item, (signal) => item.run(this.#context(item, signal))));
  }

  /** Nothing happens to one that is not here. Resolves when it has been told to end. */
  async cancel(id: string): Promise<void> {
    const item = this.#items.get(id);
    if (item === undefined) return;
    if (this.#lanes.isWaiting(id) || this.#unfollow(id)) {
      await this.#end(item, { outcome: 'cancelled', result: { answer: item.failure('CANCELLED: not started') } });
      return;
    }
    const running = this.#running.get(id);
    if (running === undefined) return;
    running.cancelled = true;
    await this.#killTask(item);
    running.abort.abort();
  }

  /** What runs outside of this process goes on; everything else is dropped where it is, for the next start to decide on. */
  async stop(): Promise<void> {
    this.#stop.abort();
    for (const wait of this.#waits.values()) wait.abort();
    await Promise.allSettled([...this.#tasks]);
  }

  #pump(): void {
    if (this.#stop.signal.aborted) return;
    for (const id of this.#lanes.start()) {
      const item = this.#items.get(id);
      if (item !== undefined) this.#track(this.#run(item));
    }
  }

  /** They leave the queue, and end with the newer one. */
  #supersede(newer: string, older: readonly string[]): void {
    const gone = older.flatMap((id) => this.#items.get(id) ?? []).filter(({ scheduling }) => scheduling.newestOnly === true);
    const followers = gone.flatMap((item) => [...(this.#followers.get(item.id) ?? []), item]);
    for (const { id } of gone) {
      this.#waits.get(id)?.abort();
      this.#followers.delete(id);
      this.#lanes.remove(id);
    }
    if (followers.length > 0) this.#followers.set(newer, followers);
  }

  /** Whether it was waiting for a newer one's result. */
  #unfollow(id: string): boolean {
    for (const [newer, followers] of this.#followers) {
      if (!followers.some((item) => item.id === id)) continue;
      this.#followers.set(
        newer,
        followers.filter((item) => item.id !== id),
      );
      return true;
    }
    return false;
  }

  async #run(item: Item): Promise<void> {
    this.#waits.get(item.id)?.abort();
    if (this.#parts.bootTime() >= item.startBefore) return this.#end(item, this.#late(item));
    await this.#supervise(item, async (signal) => {
      await this.#begin(item);
      return item.run(this.#context(item, signal));
    });
  }

  /** The second commit (engine.md A1): before the first side effect, or there is none. */
  async #begin(item: Item): Promise<void> {
    if (item.scheduling.repeat === 'read') return;
    const again = item.row.attempt > 0;
    const before = item.row;
    item.row = startedRow(before);
    try {
      // What is left of the first attempt is not taken for the second one's.
      if (again && before.task !== undefined) await this.#parts.tasks.forget(this.#taskOf(item), { signal: NEVER });
      await this.#parts.records.save(item);
    } catch (error) {
      item.row = before;
      throw error;
    }
  }

  async #supervise(item: Item, work: (signal: AbortSignal) => Promise<EffectResult>): Promise<void> {
    const running: Running = { abort: new AbortController(), cancelled: false };
    this.#running.set(item.id, running);
    const over = new AbortController();
    this.#armDeadline(item, running, over.signal);
    const ended = await this.#outcome(item, running, work);
    over.abort();
    this.#running.delete(item.id);
    if (ended !== undefined) await this.#end(item, ended);
  }

  /** Undefined when this process is stopped: the next one adopts what runs on, and decides on the rest. */
  async #outcome(item: Item, running: Running, work: (signal: AbortSignal) => Promise<EffectResult>): Promise<Ended | undefined> {
    try {
      const result = await work(AbortSignal.any([running.abort.signal, this.#stop.signal]));
      return { outcome: outcomeOf(result.answer, running.cancelled), result };
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined;
      if (running.cancelled) await this.#killTask(item);
      return this.#failed(item, running, error);
    }
  }

  #failed(item: Item, { cancelled, abort }: Running, error: unknown): Ended {
    if (cancelled) return { outcome: 'cancelled', result: { answer: item.failure(CANCELLED_RUNNING) } };
    // Each commit is awaited before the side effect that it is about.
    if (error instanceof AgentError && error.code === 'journal.unavailable')
      return refused(item, `${JOURNAL_UNAVAILABLE}: ${error.message}; nothing was done`);
    if (error instanceof AgentError && error.code === 'instruction.interrupted')
      return { outcome: 'unknown', result: { answer: item.failure(interruptedText(item.row)) } };
    const late = abort.signal.aborted ? abort.signal.reason : undefined;
    const text = late instanceof AgentError ? late.message : messageOf(error);
    if (!(error instanceof AgentError) && late === undefined)
      this.#parts.logger.error('an instruction failed in a way that nobody foresaw', { tag: item.row.tag, error });
    return { outcome: 'failed', result: { answer: item.failure(text) } };
  }

  async #end(item: Item, ended: Ended): Promise<void> {
    this.#waits.get(item.id)?.abort();
    this.#waits.delete(item.id);
    // From here on a repeat is answered by the journal, and a cancel comes too late.
    this.#lanes.remove(item.id);
    const { clock, records } = this.#parts;
    item.row = finishedRow(item.row, ended.outcome, clock.now());
    await records.finished(item, ended);
    this.#items.delete(item.id);
    this.#pump();
    const followers = this.#followers.get(item.id) ?? [];
    this.#followers.delete(item.id);
    for (const follower of followers) await this.#end(follower, ended);
  }

  #context(item: Item, signal: AbortSignal): EffectContext {
    return {
      signal,
      task: this.#taskOf(item),
      receivedAt: item.received?.at,
      step: item.row.step,
      reached: async (step) => {
        item.row = { ...item.row, step };
        await this.#parts.records.save(item);
      },
    };
  }

  #armDeadline({ scheduling: { deadlineMs } }: Item, { abort }: Running, signal: AbortSignal): void {
    if (deadlineMs === undefined) return;
    const late = new AgentError('instruction.timed_out', { problem: `it took longer than ${deadlineMs} ms` });
    this.#parts.clock.sleep(deadlineMs, { signal }).then(
      () => abort.abort(late),
      () => {},
    );
  }

  #armExpiry(item: Item): void {
    if (!Number.isFinite(item.startBefore)) return;
    const wait = new AbortController();
    this.#waits.set(item.id, wait);
    const ms = item.startBefore - this.#parts.bootTime();
    this.#parts.clock.sleep(Math.max(0, ms), { signal: wait.signal }).then(
      () => this.#lanes.isWaiting(item.id) && this.#track(this.#end(item, this.#late(item))),
      () => {},
    );
  }

  #late(item: Item): Ended {
    const waited = this.#lanes.isWaiting(item.id) ? this.#lanes.waitsFor(item.id) : `others of class ${item.scheduling.slot}`;
    return refused(item, item.expires ? 'EXPIRED: not started' : `BUSY: waited behind ${waited}; not started`);
  }

  #taskOf({ row }: Item): TaskId {
    return taskIdOf(keyOf(row), this.#parts.sha256);
  }

  async #killTask(item: Item): Promise<void> {
    const { row } = item;
    if (row.task === undefined) return;
    await this.#parts.tasks.cancel(this.#taskOf(item), { signal: NEVER }).catch((error: unknown) => {
      this.#parts.logger.error('a task could not be killed', { tag: row.tag, error });
    });
  }

  #track(task: Promise<void>): void {
    const tracked = task.catch((error: unknown) => this.#parts.logger.error('an instruction was lost', { error }));
    this.#tasks.add(tracked);
    void tracked.then(() => this.#tasks.delete(tracked));
  }
}

export const JOURNAL_UNAVAILABLE = 'JOURNAL_UNAVAILABLE';

function refused(item: Item, text: string): Ended {
  return { outcome: 'refused', result: { answer: item.failure(text) } };
}

function outcomeOf(answer: Answer, cancelled: boolean): Outcome {
  if (cancelled && answer.kind === 'error') return 'cancelled';
  const isFailure = answer.kind === 'error' || (answer.kind === 'json' && answer.type.endsWith('_ERROR'));
  return isFailure ? 'failed' : 'done';
}

const NEVER = new AbortController().signal;
