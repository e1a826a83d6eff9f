import { workerData } from 'node:worker_threads';
import { serveWorker } from '../threads/worker-server.js';
import { SqliteLogFile } from './sqlite-log-file.js';
import type { LogCall } from './sqlite-log-protocol.js';

/** The thread that waits for the disk; a long WAL is folded in after the answer, not before it. */
const file = new SqliteLogFile(String(workerData));

serveWorker<LogCall>({ run, otherwise: 'log.not_written', after: () => file.checkpoint() });

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
