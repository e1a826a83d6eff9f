import { kindOf } from '../../domain/instruction/catalogue.js';
import type { Reading, Work } from '../../domain/instruction/kinds/kind.js';
import { keyText } from '../../domain/instruction/model.js';
import { afterRestart, interruptedText, type TaskEvidence } from '../../domain/instruction/restart.js';
import { finishedRow, isFinished, type Row } from '../../domain/instruction/row.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Journal, JournalEntry, OpenedJournal } from '../../ports/instruction/journal.js';
import type { TaskId, TaskRunner } from '../../ports/instruction/task-runner.js';
import type { EffectResult, Effects } from './effects.js';
import { neverRun, restoredItem, withoutRunnersDeadline } from './items.js';
import { decodePayload } from './payload.js';
import { keyOf, type Results } from './results.js';
import { BACKGROUND_ANSWER } from './script-effect.js';
import { taskIdOf } from './task-id.js';
import type { Records, Workbench } from './workbench.js';

export interface RecoveryParts {
  readonly journal: Journal;
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  readonly bootTime: () => number;
  /** Boot id of the kernel. */
  readonly boot: string;
  readonly results: Results;
  readonly workbench: Workbench;
  readonly records: Records;
  readonly effects: Effects;
  readonly sha256: (text: string) => string;
  readonly reading: Reading;
}

/** What an earlier process has left: each row is adopted, run again, answered or given back, in the order in which they were received. */
export class Recovery {
  readonly #parts: RecoveryParts;

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
  }

  /** The rows that had no effect, of which their server is to decide. Does not throw. */
  async run({ live }: OpenedJournal, options: CallOptions): Promise<ReadonlyMap<string, Row>> {
    const { clock, boot, bootTime } = this.#parts;
    const now = { wall: clock.now(), boot, bootTime: bootTime() };
    const waiting = new Map<string, Row>();
    const finished = live.filter(({ row }) => isFinished(row));
    // In the order of their ends, and before everything that ends now.
    const byEnd = finished.toSorted((a, b) => (a.row.finishedAt ?? 0) - (b.row.finishedAt ?? 0));
    for (const { row, replyBytes } of byEnd) this.#parts.results.restore(row, replyBytes);
    for (const entry of live) {
      const { row, hasPayload } = entry;
      const evidence = await this.#evidence(row, options);
      switch (afterRestart(row, evidence, hasPayload, now)) {
        case 'offer':
          break;
        case 'adopt':
          this.#adopt(row);
          break;
        case 'rerun':
          await this.#rerun(entry, options);
          break;
        case 'not_started':
          waiting.set(keyText(row), row);
          break;
        case 'interrupted':
          await this.#interrupted(row, options);
      }
    }
    return waiting;
  }

  async #evidence(row: Row, options: CallOptions): Promise<TaskEvidence> {
    if (row.state !== 'started' || row.task === undefined) return undefined;
    try {
      return (await this.#parts.tasks.state(this.#taskOf(row), options)).kind;
    } catch {
      // Whoever adopts it is told why its end cannot be learnt.
      return 'running';
    }
  }

  #adopt(row: Row): void {
    const { tasks, workbench, effects } = this.#parts;
    const wait = async (options: CallOptions): Promise<EffectResult> =>
      row.background
        ? { answer: BACKGROUND_ANSWER }
        : { answer: effects.ended(row.type, await tasks.adopt(this.#taskOf(row), options)) };
    workbench.adopt(restoredItem(row, wait));
  }

  async #rerun({ row }: JournalEntry, options: CallOptions): Promise<void> {
    const { journal, workbench, effects, reading } = this.#parts;
    const work = workOf(row, reading, await journal.payload(keyOf(row), options).catch(() => undefined));
    if (work === undefined) return this.#interrupted(row, options);
    workbench.add(restoredItem(row, (context) => effects.run(work.plan, context), withoutRunnersDeadline(work)));
  }

  /** Its answer is written when nothing of it runs any more (engine.md A5). */
  async #interrupted(row: Row, options: CallOptions): Promise<void> {
    const { tasks, records, clock, effects } = this.#parts;
    const accepted = await effects.accepted(row, this.#taskOf(row), options).catch(() => undefined);
    if (accepted !== undefined) {
      const done = restoredItem(finishedRow(row, 'done', clock.now()), neverRun);
      return records.finished(done, { outcome: 'done', result: accepted });
    }
    if (row.task !== undefined) await tasks.cancel(this.#taskOf(row), options).catch(() => {});
    const item = restoredItem(finishedRow(row, 'unknown', clock.now()), neverRun);
    await records.finished(item, { outcome: 'unknown', result: { answer: item.failure(interruptedText(row)) } });
  }

  #taskOf(row: Row): TaskId {
    return taskIdOf(keyOf(row), this.#parts.sha256);
  }
}

/** Undefined when this version no longer understands it. */
function workOf(row: Row, reading: Reading, jsonB64: string | undefined): Work | undefined {
  const kind = kindOf(row.type);
  if (kind?.read === undefined || jsonB64 === undefined) return undefined;
  const decoded = decodePayload(jsonB64, kind);
  const read = 'problem' in decoded ? decoded : kind.read(decoded.json, reading);
  return 'work' in read ? read.work : undefined;
}
