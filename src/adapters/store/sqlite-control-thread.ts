import type { Worker } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import { startWorker } from '../log/typescript-worker.js';
import type { ControlCall, ControlReply } from './sqlite-control-protocol.js';

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The worker's door on the main thread, which only posts messages here. Calls are carried out one after the other and answered in that
 * order. A worker that died is started again by the next call, and reads the file anew.
 */
export class SqliteControlThread {
  readonly #file: string;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #next = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** @throws AgentError what the call throws; `store.unavailable` with fact `lost` when the thread has ended meanwhile */
  ask<T>(call: ControlCall): Promise<T> {
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

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    // One that has ended by itself has no file open any more.
    await this.ask<void>({ call: 'close' }).catch(() => {});
    await worker.terminate();
  }

  #start(): Worker {
    const worker = startWorker('./sqlite-control-worker', import.meta.url, this.#file);
    worker.on('message', (reply: ControlReply) => this.#settle(worker, reply));
    worker.on('error', (error) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, undefined));
    return worker;
  }

  #settle(worker: Worker, reply: ControlReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) worker.unref();
    if ('failure' in reply) {
      const { code, facts, cause } = reply.failure;
      pending?.reject(new AgentError(code, facts, { cause }));
      // The worker answers a call with what `SqliteControlFile` says of it.
    } else pending?.resolve(reply.value as never);
  }

  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    const facts = { lost: 'true', problem: 'the thread of the store has ended' };
    for (const { reject } of lost) reject(new AgentError('store.unavailable', facts, { cause }));
  }
}
