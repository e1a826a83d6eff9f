// idle-connections-client.mjs HOST PORT: opens and holds connections as told; see idle-connections.ts.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** At a time: more would be a test of backlogs. */
const WIDTH = 64;
const ANSWER_MS = 10_000;
const [host, port] = process.argv.slice(2);
const sockets = [];
let lost = 0;

/** A byte to and fro: the proxy has its connection to the endpoint then. */
async function echo(socket) {
  const answered = new Promise((resolve) => socket.once('data', resolve));
  socket.write('x');
  return Promise.race([answered.then(() => true), sleep(ANSWER_MS, false, { ref: false })]);
}

function open() {
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(undefined));
    socket.once('close', () => lost++);
  });
}

async function openMany(count) {
  let left = count;
  const worker = async () => {
    while (left-- > 0) {
      const socket = await open();
      if (socket !== undefined && (await echo(socket))) sockets.push(socket);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, worker));
  return sockets.length;
}

async function closeAll() {
  const closed = sockets.splice(0).map((socket) => new Promise((resolve) => socket.once('close', resolve).end()));
  await Promise.all(closed);
  lost = 0;
  return closed.length;
}

async function echoSample(count) {
  const step = Math.max(1, Math.floor(sockets.length / count));
  const sample = sockets.filter((_, index) => index % step === 0).slice(0, count);
  return (await Promise.all(sample.map(echo))).filter(Boolean).length;
}

const verbs = { open: openMany, close: closeAll, echo: echoSample, lost: () => lost };
process.on('message', async ({ verb, count }) => process.send(await verbs[verb](count)));
process.on('disconnect', () => process.exit(0));
