// node-udp.mjs LISTEN=ENDPOINT: what a plain dgram proxy in JavaScript does.
import { createSocket } from 'node:dgram';

const split = (text) => {
  const [address, port] = text.split(':');
  return { address, port: Number(port) };
};
const [listen, endpoint] = process.argv[2].split('=').map(split);
const server = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
const flows = new Map();

function flowOf(client) {
  const key = `${client.address}:${client.port}`;
  const known = flows.get(key);
  if (known !== undefined) return known;
  const socket = createSocket('udp4');
  const flow = { socket, connected: false, waiting: [] };
  flows.set(key, flow);
  socket.on('error', () => {});
  socket.on('message', (data) => server.send(data, client.port, client.address));
  socket.connect(endpoint.port, endpoint.address, () => {
    flow.connected = true;
    for (const data of flow.waiting.splice(0)) socket.send(data);
  });
  return flow;
}

server.on('message', (data, client) => {
  const flow = flowOf(client);
  if (flow.connected) flow.socket.send(data);
  else flow.waiting.push(data);
});
server.bind(listen.port, listen.address);
