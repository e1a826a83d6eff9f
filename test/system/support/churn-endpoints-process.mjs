// churn-endpoints-process.mjs: TCP servers on fixed addresses that open and close as told; see churn-endpoints.ts.
import { createServer } from 'node:net';

const PORT = 9_000;
const servers = new Map();

function open(address) {
  const sockets = new Set();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    socket.once('data', () => socket.end(`${address}\n`));
  });
  servers.set(address, { server, sockets });
  return new Promise((resolve) => server.listen(PORT, address, 1_024, resolve));
}

/** As when a program ends: no listener, and its connections are cut. */
function close(address) {
  const { server, sockets } = servers.get(address);
  servers.delete(address);
  const closed = new Promise((resolve) => server.close(resolve));
  for (const socket of sockets) socket.resetAndDestroy();
  return closed;
}

process.on('message', async ({ number, verb, addresses }) => {
  await Promise.all(addresses.map(verb === 'open' ? open : close));
  process.send(number);
});
process.on('disconnect', () => process.exit(0));
