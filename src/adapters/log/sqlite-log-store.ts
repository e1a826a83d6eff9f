import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Entry, LogId, Revision } from '../../domain/log/model.js';
import { ensureFolder } from '../files/durable-file.js';
import { message } from '../sqlite/sqlite-errors.js';
import { startWorker } from '../threads/typescript-worker.js';
import { WorkerCalls } from '../threads/worker-calls.js';
import type { CommitOutcome, LogStore, OpenedLog, StoredBatch } from './log-store.js';
import type { LogCall } from './sqlite-log-protocol.js';

/**
 * The worker's door on the main thread, which only posts messages here. A worker that died is started again by the next call: it
 * reads the file anew, as after a failed commit.
 */
export class SqliteLogStore implements LogStore {
  readonly #file: string;
  readonly #calls: WorkerCalls<LogCall>;

  constructor(file: string) {
    this.#file = file;
    this.#calls = new WorkerCalls({
      start: () => startWorker('./sqlite-log-worker', import.meta.url, file),
      lost: (cause) => new AgentError('log.closed', { problem: 'the log thread has ended' }, { cause }),
    });
  }

  async open(): Promise<OpenedLog> {
    try {
      await ensureFolder(dirname(this.#file));
    } catch (error) {
      throw new AgentError(
        'log.not_written',
        { file: this.#file, problem: `${this.#file}: ${message(error)}` },
        { cause: error },
      );
    }
    return this.#calls.ask<OpenedLog>({ call: 'open' });
  }

  async commit(batch: StoredBatch): Promise<CommitOutcome> {
    try {
      return await this.#calls.ask<CommitOutcome>({ call: 'commit', batch });
    } catch (error) {
      return { outcome: 'in_doubt', problem: String(error) };
    }
  }

  async resolve(batch: StoredBatch, problem: string): Promise<CommitOutcome> {
    try {
      return await this.#calls.ask<CommitOutcome>({ call: 'resolve', batch, problem });
    } catch (error) {
      return { outcome: 'in_doubt', problem: String(error) };
    }
  }

  read(first: Revision): Promise<readonly Entry[]> {
    return this.#calls.ask<readonly Entry[]>({ call: 'read', first });
  }

  copy(now: number): Promise<{ readonly file: string; readonly revision: Revision }> {
    return this.#calls.ask({ call: 'copy', now });
  }

  copyTo(file: string): Promise<{ readonly logId: LogId; readonly revision: Revision }> {
    return this.#calls.ask({ call: 'copyTo', file });
  }

  async close(): Promise<void> {
    await this.#calls.close({ call: 'close' });
  }
}
