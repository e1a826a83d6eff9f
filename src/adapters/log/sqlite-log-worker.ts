import { parentPort, workerData } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import { SqliteLogFile } from './sqlite-log-file.js';
import type { LogCall } from './sqlite-log-protocol.js';
import type { WorkerReply, WorkerRequest } from './worker-calls.js';

/** The thread that waits for the disk. One request after the other; a long WAL is folded in after the answer, not before it. */
const file = new SqliteLogFile(String(workerData));

parentPort?.on('message', (request: WorkerRequest<LogCall>) => {
  parentPort?.postMessage(answer(request));
  if (request.call === 'close') parentPort?.close();
  else file.checkpoint();
});

function answer(request: WorkerRequest<LogCall>): WorkerReply {
  try {
    return { id: request.id, value: run(request) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof AgentError) return { id: request.id, failure: { code: error.code, facts: error.facts, cause: text } };
    return { id: request.id, failure: { code: 'log.not_written', facts: { problem: text }, cause: text } };
  }
}

function run(request: LogCall): unknown {
  switch (request.call) {
    case 'open':
      return file.open();
    case 'commit':
      return file.commit(request.batch);
    case 'resolve':
      return file.resolve(request.batch, request.problem);
    case 'read':
      return file.read(request.first);
    case 'copy':
      return file.copy(request.now);
    case 'copyTo':
      return file.copyTo(request.file);
    case 'close':
      return file.close();
  }
}
