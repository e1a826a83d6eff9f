// A worker thread with a back end and a client of its own: says the back end's port, is told the proxy's, then exchanges a byte after the
// other and puts into the shared memory how many there were, and the longest wait for one in milliseconds.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

const counters = new Int32Array(workerData as SharedArrayBuffer);
const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
await once(server, 'listening');
const at = server.address();
parentPort?.postMessage(typeof at === 'object' ? at?.port : undefined);

parentPort?.once('message', (port: number) => {
  let last = performance.now();
  const client = connect({ port, host: '127.0.0.1', noDelay: true }, () => client.write('x'));
  client.on('data', () => {
    const now = performance.now();
    Atomics.add(counters, 0, 1);
    Atomics.store(counters, 1, Math.max(Atomics.load(counters, 1), Math.round(now - last)));
    last = now;
    client.write('x');
  });
  client.on('error', () => {});
});
