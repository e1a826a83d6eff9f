// idle-connections-backend.mjs: sends back what comes. Says its port.
import { createServer } from 'node:net';

const server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
server.listen(0, '127.0.0.1', 4_096, () => process.send(server.address().port));
process.on('disconnect', () => process.exit(0));
