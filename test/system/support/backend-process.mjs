// backend-process.mjs greet|stream|echo: see backends.ts
import { createServer } from 'node:net';

const [kind] = process.argv.slice(2);
const chunk = Buffer.alloc(64 * 1024, 'x');
const server = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => {});
  if (kind === 'stream') {
    const write = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', write);
    socket.on('end', () => socket.destroy());
    socket.resume();
    write();
  } else if (kind === 'echo') socket.pipe(socket);
  else socket.once('data', () => socket.end(`${server.address().port}\n`));
});
server.listen(0, '127.0.0.1', 4096, () => process.send(server.address().port));
process.on('message', () => {
  server.close();
  process.send('retired');
});
process.on('disconnect', () => process.exit(0));
