import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { OpenedView, StoredView, ViewBatch, ViewBinding, ViewStore } from '../../ports/log/view-store.js';
import { ensureFolder } from '../files/durable-file.js';
import { message } from './sqlite-log-errors.js';
import type { ViewCall, ViewReply } from './sqlite-view-protocol.js';
import { startWorker } from './typescript-worker.js';

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** `view.db`, in a worker thread of its own. A call that is aborted before it began does nothing; later it is carried out. */
export class SqliteViewStore implements ViewStore {
  readonly #file: string;
  readonly #pending = new Map<number, Pending>();
  #binding: ViewBinding | undefined;
  #worker: Worker | undefined;
  #next = 0;

  /** Its folder is made (0700) when it is missing. */
  constructor(file: string) {
    this.#file = file;
  }

  async open(binding: ViewBinding, { signal }: CallOptions): Promise<OpenedView> {
    signal.throwIfAborted();
    try {
      await ensureFolder(dirname(this.#file));
    } catch (error) {
      const facts = { file: this.#file, problem: `${this.#file}: ${message(error)}` };
      throw new AgentError('log.view_not_written', facts, { cause: error });
    }
    this.#binding = binding;
    return this.#ask<OpenedView>({ call: 'open', binding });
  }

  async replace(view: StoredView, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    await this.#ask<void>({ call: 'replace', view });
  }

  async append(batch: ViewBatch, { signal }: CallOptions): Promise<boolean> {
    signal.throwIfAborted();
    return this.#ask<boolean>({ call: 'append', batch });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#binding = undefined;
    if (worker === undefined) return;
    try {
      await this.#ask<void>({ call: 'close' });
    } catch {
      // It has ended by itself, and the kernel has closed the file.
    }
    await worker.terminate();
  }

  #ask<T>(call: ViewCall): Promise<T> {
    const isNew = this.#worker === undefined;
    const worker = this.#worker ?? this.#start();
    this.#worker = worker;
    // One that was lost is followed by one that knows whose the file is.
    if (isNew && call.call !== 'open' && this.#binding !== undefined) {
      this.#send<OpenedView>(worker, { call: 'open', binding: this.#binding }).catch(() => {});
    }
    return this.#send<T>(worker, call);
  }

  #send<T>(worker: Worker, call: ViewCall): Promise<T> {
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      // Only a request under way holds the process.
      worker.ref();
      worker.postMessage({ ...call, id });
    });
  }

  #start(): Worker {
    const worker = startWorker('./sqlite-view-worker', import.meta.url, this.#file);
    worker.on('message', (reply: ViewReply) => this.#settle(worker, reply));
    worker.on('error', (error) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, undefined));
    return worker;
  }

  #settle(worker: Worker, reply: ViewReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) worker.unref();
    if ('failure' in reply) pending?.reject(new AgentError(reply.failure.code, reply.failure.facts));
    // The worker answers a call with what `ViewStore` says of it.
    else pending?.resolve(reply.value as never);
  }

  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of lost)
      reject(new AgentError('log.view_not_written', { problem: 'the view thread has ended' }, { cause }));
  }
}
