import { workerData } from 'node:worker_threads';
import { serveWorker } from '../threads/worker-server.js';
import { SqliteControlFile } from './sqlite-control-file.js';
import type { ControlCall } from './sqlite-control-protocol.js';

/** The thread that waits for the disk; a long WAL is folded in after the answer, not before it. */
const file = new SqliteControlFile(String(workerData));

serveWorker<ControlCall>({ run, otherwise: 'store.unavailable', after: ({ call }) => call === 'commit' && file.checkpoint() });

function run(request: ControlCall): unknown {
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
