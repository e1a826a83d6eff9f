import { dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { OpenedView, StoredView, ViewBatch, ViewBinding, ViewStore } from '../../ports/log/view-store.js';
import { ensureFolder } from '../files/durable-file.js';
import { message } from '../sqlite/sqlite-errors.js';
import { startWorker } from '../threads/typescript-worker.js';
import { WorkerCalls } from '../threads/worker-calls.js';
import type { ViewCall } from './sqlite-view-protocol.js';

/** `view.db`, in a worker thread of its own. A call that is aborted before it began does nothing; later it is carried out. */
export class SqliteViewStore implements ViewStore {
  readonly #file: string;
  readonly #calls: WorkerCalls<ViewCall>;
  #binding: ViewBinding | undefined;

  /** Its folder is made (0700) when it is missing. */
  constructor(file: string) {
    this.#file = file;
    this.#calls = new WorkerCalls({
      start: () => startWorker('./sqlite-view-worker', import.meta.url, file),
      lost: (cause) => new AgentError('log.view_not_written', { problem: 'the view thread has ended' }, { cause }),
    });
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
    return this.#calls.ask<OpenedView>({ call: 'open', binding });
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
    this.#binding = undefined;
    await this.#calls.close({ call: 'close' });
  }

  #ask<T>(call: ViewCall): Promise<T> {
    // A worker that was lost is followed by one that has to be told whose the file is.
    if (!this.#calls.running && this.#binding !== undefined) {
      this.#calls.ask<OpenedView>({ call: 'open', binding: this.#binding }).catch(() => {});
    }
    return this.#calls.ask<T>(call);
  }
}
