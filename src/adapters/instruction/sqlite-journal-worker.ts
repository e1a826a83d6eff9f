import { parentPort, workerData } from 'node:worker_threads';
import { AgentError } from '../../domain/kernel/errors.js';
import { SqliteJournalFile } from './sqlite-journal-file.js';
import type { JournalAnswer, JournalRequest } from './sqlite-journal-protocol.js';

/** The thread that waits for the disk. One request after the other; a long WAL is folded in after the answer, not before it. */
const file = new SqliteJournalFile(String(workerData.file), Number(workerData.reserveBytes));

parentPort?.on('message', (request: JournalRequest) => {
  parentPort?.postMessage(answer(request));
  if (request.call === 'close') parentPort?.close();
  else file.checkpoint();
});

function answer(request: JournalRequest): JournalAnswer {
  try {
    return { id: request.id, value: run(request) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof AgentError) return { id: request.id, failure: { code: error.code, facts: error.facts, cause: text } };
    return { id: request.id, failure: { code: 'journal.unavailable', facts: { problem: text }, cause: text } };
  }
}

function run(request: JournalRequest): unknown {
  switch (request.call) {
    case 'open':
      return file.open(request.now);
    case 'commit':
      return file.commit(request.commits, performance.now());
    case 'find':
      return file.find(request.keys);
    case 'reply':
      return file.reply(request.key, 'replies');
    case 'setAside':
      return file.reply(request.key, 'set_aside');
    case 'payload':
      return file.payload(request.key);
    case 'prune':
      return file.prune(request.limits);
    case 'close':
      return file.close();
  }
}
