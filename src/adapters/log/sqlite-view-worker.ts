import { parentPort, workerData } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import { SqliteViewFile } from './sqlite-view-file.js';
import type { ViewCall } from './sqlite-view-protocol.js';
import type { WorkerReply, WorkerRequest } from './worker-calls.js';

/** The thread that waits for the disk, one request after the other. */
const file = new SqliteViewFile(String(workerData));

parentPort?.on('message', (request: WorkerRequest<ViewCall>) => {
  parentPort?.postMessage(answer(request));
  if (request.call === 'close') parentPort?.close();
});

function answer(request: WorkerRequest<ViewCall>): WorkerReply {
  try {
    return { id: request.id, value: run(request) };
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    if (error instanceof AgentError) return { id: request.id, failure: { code: error.code, facts: error.facts, cause } };
    return { id: request.id, failure: { code: 'log.view_not_written', facts: { problem: cause }, cause } };
  }
}

function run(request: ViewCall): unknown {
  switch (request.call) {
    case 'open':
      return file.open(request.binding);
    case 'replace':
      return file.replace(request.view);
    case 'append':
      return file.append(request.batch);
    case 'close':
      return file.close();
  }
}
