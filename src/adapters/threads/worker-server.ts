import { parentPort } from 'node:worker_threads';
import { AgentError, type ErrorCode } from '../../domain/kernel/errors.js';
import type { WorkerReply, WorkerRequest } from './worker-calls.js';

export interface WorkerServerParts<Call> {
  /** Waits as long as it takes: nobody else is served meanwhile. */
  readonly run: (call: Call) => unknown;
  /** Of whatever `run` throws that has none. */
  readonly otherwise: ErrorCode;
  /** What may be done after the answer, not before it. */
  readonly after?: (call: Call) => void;
}

/** Serves the calls of `WorkerCalls` in a worker thread, one after the other, until the call `close`. */
export function serveWorker<Call extends { readonly call: string }>({ run, otherwise, after }: WorkerServerParts<Call>): void {
  const answer = (request: WorkerRequest<Call>): WorkerReply => {
    try {
      return { id: request.id, value: run(request) };
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      if (error instanceof AgentError) return { id: request.id, failure: { code: error.code, facts: error.facts, cause } };
      return { id: request.id, failure: { code: otherwise, facts: { problem: cause }, cause } };
    }
  };
  parentPort?.on('message', (request: WorkerRequest<Call>) => {
    parentPort?.postMessage(answer(request));
    if (request.call === 'close') parentPort?.close();
    else after?.(request);
  });
}
