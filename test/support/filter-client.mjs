// PROTOCOL ADDRESS PORT TIMES FROM: asks so many times, 32 at once, and prints what it saw as JSON.
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';

const [, , protocol, address, port, times, from] = process.argv;
const SILENT_MS = 1_500;

const tcp = () =>
  new Promise((resolve) => {
    const socket = connect({ host: address, port: Number(port), ...(from ? { localAddress: from } : {}) });
    let text = '';
    socket.setTimeout(SILENT_MS, () => {
      resolve('silent');
      socket.destroy();
    });
    socket.on('data', (part) => (text += part));
    socket.on('end', () => resolve(text));
    socket.on('error', ({ code }) => resolve(code === 'ECONNREFUSED' ? 'refused' : 'reset'));
  });

const udp = () =>
  new Promise((resolve) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    const end = (what) => {
      clearTimeout(timer);
      resolve(what);
      socket.close();
    };
    const timer = setTimeout(() => end('silent'), SILENT_MS);
    socket.on('message', (text) => end(String(text)));
    socket.on('error', () => end('refused'));
    const ask = () => socket.connect(Number(port), address, () => socket.send('?'));
    if (from) socket.bind(0, from, ask);
    else ask();
  });

const answers = [];
for (let left = Number(times); left > 0; left -= 32) {
  answers.push(...(await Promise.all(Array.from({ length: Math.min(32, left) }, protocol === 'tcp' ? tcp : udp))));
}
console.log(JSON.stringify(answers));
