import { parentPort, workerData } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import { SqliteControlFile } from './sqlite-control-file.js';
import type { ControlReply, ControlRequest } from './sqlite-control-protocol.js';

/** The thread that waits for the disk. One request after the other; a long WAL is folded in after the answer, not before it. */
const file = new SqliteControlFile(String(workerData));

parentPort?.on('message', (request: ControlRequest) => {
  parentPort?.postMessage(answer(request));
  if (request.call === 'close') parentPort?.close();
  else if (request.call === 'commit') file.checkpoint();
});

function answer(request: ControlRequest): ControlReply {
  try {
    return { id: request.id, value: run(request) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof AgentError) return { id: request.id, failure: { code: error.code, facts: error.facts, cause: text } };
    return { id: request.id, failure: { code: 'store.unavailable', facts: { problem: text }, cause: text } };
  }
}

function run(request: ControlRequest): unknown {
  switch (request.call) {
    case 'open':
      return file.open();
    case 'commit':
      return file.commit(request.commits);
    case 'get':
      return file.get(request.key);
    case 'list':
      return file.list(request.prefix);
    case 'copyTo':
      return file.copyTo(request.file);
    case 'close':
      return file.close();
  }
}
