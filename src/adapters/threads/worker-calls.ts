import type { Worker } from 'node:worker_threads';
import { AgentError, type ErrorCode, type ErrorFacts } from '../../domain/kernel/errors.js';

/** A call as it is posted to the worker. */
export type WorkerRequest<Call> = Call & { readonly id: number };

export type WorkerReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: { readonly code: ErrorCode; readonly facts: ErrorFacts; readonly cause: string } };

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

interface WorkerCallsParts {
  readonly start: () => Worker;
  /** What calls under way reject with when the worker dies. */
  readonly lost: (cause: unknown) => AgentError;
}

/** Calls of a worker thread, answered in the order in which they are made. A worker that died is started again by the next call. */
export class WorkerCalls<Call extends object> {
  readonly #parts: WorkerCallsParts;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #next = 0;

  constructor(parts: WorkerCallsParts) {
    this.#parts = parts;
  }

  get running(): boolean {
    return this.#worker !== undefined;
  }

  /** The worker answers each call with what its caller says. */
  ask<T>(call: Call): Promise<T> {
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

  /** After `last`, which is asked for nothing but to end. Safe at any time and twice. */
  async close(last: Call): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    try {
      await this.ask<void>(last);
    } catch {
      // It has ended by itself, and the kernel has closed the file.
    }
    await worker.terminate();
  }

  #start(): Worker {
    const worker = this.#parts.start();
    worker.on('message', (reply: WorkerReply) => this.#settle(worker, reply));
    worker.on('error', (error) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, undefined));
    return worker;
  }

  #settle(worker: Worker, reply: WorkerReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) worker.unref();
    if ('failure' in reply) {
      const { code, facts, cause } = reply.failure;
      pending?.reject(new AgentError(code, facts, { cause }));
    } else pending?.resolve(reply.value as never);
  }

  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of lost) reject(this.#parts.lost(cause));
  }
}
