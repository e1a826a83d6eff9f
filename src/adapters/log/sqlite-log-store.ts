import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Entry, Revision } from '../../domain/log/model.js';
import { ensureFolder } from '../files/durable-file.js';
import type { CommitOutcome, LogStore, OpenedLog, StoredBatch } from './log-store.js';
import { message } from './sqlite-log-errors.js';
import type { LogCall, LogReply } from './sqlite-log-protocol.js';
import { startWorker } from './typescript-worker.js';

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The worker's door on the main thread, which only posts messages here. A worker that died is started again by the next call: it
 * reads the file anew, as after a failed commit.
 */
export class SqliteLogStore implements LogStore {
  readonly #file: string;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #next = 0;

  constructor(file: string) {
    this.#file = file;
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
    return this.#ask<OpenedLog>({ call: 'open' });
  }

  async commit(batch: StoredBatch): Promise<CommitOutcome> {
    try {
      return await this.#ask<CommitOutcome>({ call: 'commit', batch });
    } catch (error) {
      return { outcome: 'in_doubt', problem: String(error) };
    }
  }

  async resolve(batch: StoredBatch, problem: string): Promise<CommitOutcome> {
    try {
      return await this.#ask<CommitOutcome>({ call: 'resolve', batch, problem });
    } catch (error) {
      return { outcome: 'in_doubt', problem: String(error) };
    }
  }

  read(first: Revision): Promise<readonly Entry[]> {
    return this.#ask<readonly Entry[]>({ call: 'read', first });
  }

  copy(now: number): Promise<{ readonly file: string; readonly revision: Revision }> {
    return this.#ask({ call: 'copy', now });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    try {
      await this.#ask<void>({ call: 'close' });
    } catch {
      // It has ended by itself, and the kernel has closed the file.
    }
    await worker.terminate();
  }

  #ask<T>(call: LogCall): Promise<T> {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      // Only a request under way holds the process.
      worker.ref();
      worker.postMessage({ ...call, id });
    });
  }

  #start(): Worker {
    const worker = startWorker('./sqlite-log-worker', import.meta.url, this.#file);
    worker.on('message', (reply: LogReply) => this.#settle(worker, reply));
    worker.on('error', (error) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, undefined));
    return worker;
  }

  #settle(worker: Worker, reply: LogReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) worker.unref();
    if ('failure' in reply) {
      const { code, facts, cause } = reply.failure;
      pending?.reject(new AgentError(code, facts, { cause }));
      // The worker answers a call with what `LogStore` says of it.
    } else pending?.resolve(reply.value as never);
  }

  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of lost) reject(new AgentError('log.closed', { problem: 'the log thread has ended' }, { cause }));
  }
}
