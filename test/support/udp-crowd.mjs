// udp-crowd hold PORT CLIENTS: so many sockets at one time, each asks twice; prints how many were answered rightly both times.
// udp-crowd churn PORT RATE SECONDS: so many queries a second, each from a new socket; prints how many were answered.
import { createSocket } from 'node:dgram';

const [mode, port, count, seconds] = [process.argv[2], ...process.argv.slice(3).map(Number)];

/** Asks `question` until it is answered, at most three times: datagrams may be lost. */
function ask(socket, question) {
  return new Promise((resolve) => {
    let left = 3;
    const send = () => {
      if (left-- === 0) return finish(false);
      socket.send(question);
      timer = setTimeout(send, 1_000);
    };
    const finish = (right) => {
      clearTimeout(timer);
      socket.off('message', heard);
      resolve(right);
    };
    const heard = (message) => message.toString() === question && finish(true);
    let timer;
    socket.on('message', heard);
    send();
  });
}

/** From an address of its own: the kernel gives ports again within seconds, and who has the same address and port is the same client. */
function connected(index) {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.on('error', () => {});
    socket.bind(0, `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`, () => {
      socket.connect(port, '127.0.0.1', () => resolve(socket));
    });
  });
}

async function hold() {
  const sockets = [];
  let right = 0;
  let next = 0;
  const round = async () => {
    for (let index = next++; index < count; index = next++) {
      sockets[index] ??= await connected(index);
      if (await ask(sockets[index], `${asked} of ${index}`)) right++;
    }
  };
  let asked = 'first';
  await Promise.all(Array.from({ length: 64 }, round));
  const first = right;
  [asked, next, right] = ['second', 0, 0];
  await Promise.all(Array.from({ length: 64 }, round));
  return Math.min(first, right);
}

async function churn() {
  let answered = 0;
  let begun = 0;
  const running = [];
  const start = performance.now();
  while (begun < count * seconds) {
    const due = Math.min(count * seconds, Math.floor(((performance.now() - start) / 1_000) * count));
    for (; begun < due; begun++) {
      const query = connected(begun).then(async (socket) => {
        if (await ask(socket, 'query')) answered++;
        socket.close();
      });
      running.push(query);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.all(running);
  return answered;
}

process.stdout.write(`${mode === 'hold' ? await hold() : await churn()}`, () => process.exit());
