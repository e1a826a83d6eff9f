import { parentPort, workerData } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import { SqliteViewFile } from './sqlite-view-file.js';
import type { ViewReply, ViewRequest } from './sqlite-view-protocol.js';

/** The thread that waits for the disk, one request after the other. */
const file = new SqliteViewFile(String(workerData));

parentPort?.on('message', (request: ViewRequest) => {
  parentPort?.postMessage(answer(request));
  if (request.call === 'close') parentPort?.close();
});

function answer(request: ViewRequest): ViewReply {
  try {
    return { id: request.id, value: run(request) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    if (error instanceof AgentError) return { id: request.id, failure: { code: error.code, facts: error.facts } };
    return { id: request.id, failure: { code: 'log.view_not_written', facts: { problem } } };
  }
}

function run(request: ViewRequest): unknown {
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
