// On port 8080 of each address of the host, TCP and UDP: tells which one answers, and whom. `TARGET CLIENT`
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const [, , count] = process.argv;
const addresses = Array.from({ length: Number(count) }, (_, index) => [`10.9.2.${index + 2}`, `fd09:2::${index + 2}`]).flat();
for (const address of addresses) {
  await new Promise((resolve) => {
    createServer((peer) => {
      peer.on('error', () => {});
      peer.end(`${address} ${peer.remoteAddress}`);
    }).listen(8080, address, resolve);
  });
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (_, { address: client, port }) => socket.send(`${address} ${client}`, port, client));
  await new Promise((resolve) => socket.bind(8080, address, resolve));
}
process.send('ready');
process.on('disconnect', () => process.exit());
