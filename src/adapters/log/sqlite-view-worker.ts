import { workerData } from 'node:worker_threads';
import { serveWorker } from '../threads/worker-server.js';
import { SqliteViewFile } from './sqlite-view-file.js';
import type { ViewCall } from './sqlite-view-protocol.js';

/** The thread that waits for the disk. */
const file = new SqliteViewFile(String(workerData));

serveWorker<ViewCall>({ run, otherwise: 'log.view_not_written' });

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
