import { workerData } from 'node:worker_threads';
import { serveWorker } from '../threads/worker-server.js';
import { SqliteJournalFile } from './sqlite-journal-file.js';
import type { JournalCall } from './sqlite-journal-protocol.js';

/** The thread that waits for the disk; a long WAL is folded in after the answer, not before it. */
const file = new SqliteJournalFile(String(workerData.file), Number(workerData.reserveBytes));

serveWorker<JournalCall>({ run, otherwise: 'journal.unavailable', after: () => file.checkpoint() });

function run(request: JournalCall): unknown {
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
    case 'vipGeneration':
      return file.vipGeneration(request.fleet);
    case 'prune':
      return file.prune(request.limits);
    case 'close':
      return file.close();
  }
}
