import { MOST_TOMBSTONES, TOMBSTONE_AFTER_EXPIRY_MS, TOMBSTONE_MS } from '../../domain/instruction/retention.js';
import type { Clock } from '../../ports/clock.js';
import type { Journal } from '../../ports/instruction/journal.js';
import type { TaskRunner } from '../../ports/instruction/task-runner.js';
import type { Logger } from '../../ports/logger.js';
import type { Results } from './results.js';
import type { Workbench } from './workbench.js';

/** What was kept in memory is tried again, and old replies go. */
const OFTEN_MS = 60_000;
/** Of these turns: tombstones and folders of tasks. */
const RARELY = 60;
/** A journal that could not be opened is tried again. */
const REOPEN_MS = 10_000;

interface HousekeepingParts {
  readonly journal: Journal;
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly results: Results;
  readonly workbench: Workbench;
  /** Opens the journal if it is not open. @throws AgentError `journal.unavailable` */
  readonly recovered: () => Promise<void>;
}

/** Keeps the journal open and small. */
export class Housekeeping {
  readonly #parts: HousekeepingParts;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  /** Until abort. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger, results, recovered } = this.#parts;
    for (let turn = 0; !signal.aborted; turn++) {
      try {
        await recovered();
        await results.sweep(signal);
        if (turn % RARELY === 0) await this.#prune(signal);
        await clock.sleep(OFTEN_MS, { signal });
      } catch (error) {
        if (signal.aborted) return;
        logger.warn('the journal of instructions could not be tidied', { error });
        await clock.sleep(REOPEN_MS, { signal }).catch(() => {});
      }
    }
  }

  /** Old tombstones, and folders of tasks that nobody will ask for. */
  async #prune(signal: AbortSignal): Promise<void> {
    const { clock, journal, tasks, workbench } = this.#parts;
    const now = clock.now();
    const receivedBefore = now - TOMBSTONE_MS;
    await journal.prune({ receivedBefore, expiredBefore: now - TOMBSTONE_AFTER_EXPIRY_MS, most: MOST_TOMBSTONES }, { signal });
    for (const id of await tasks.list({ signal })) {
      if (!workbench.owns(id) && (await tasks.state(id, { signal })).kind !== 'running') await tasks.forget(id, { signal });
    }
  }
}
