// fleet-peer.mjs installer FOLDER | greet TEXT | echo | websocket | hold | idle HOST PORT | udp-answer TEXT | udp-ask HOST PORT | proxy HOST PORT | client GREET_HOST PORT ECHO_HOST PORT: see fleet-peer.ts
import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { createServer as createWebServer } from 'node:http';
import { connect, createServer } from 'node:net';
import { WebSocketServer } from 'ws';

const [kind, ...args] = process.argv.slice(2);
const PAUSE_MS = 50;

/** `append.17` is the file `append` with 17 for each `@N`. */
async function script(url) {
  const [file, number = ''] = new URL(url, 'http://localhost').searchParams.get('t').split('.');
  return (await readFile(`${args[0]}/${file}`, 'utf8')).replaceAll('@N', number);
}

function installer() {
  return createWebServer((request, response) => {
    if (!request.url.startsWith('/scripts')) return response.end('hello\n');
    script(request.url).then(
      (text) => response.end(text),
      () => response.writeHead(404).end(),
    );
  });
}

const pairs = new Set();

function proxy() {
  const [host, port] = args;
  return createServer((inner) => {
    const outer = connect({ host, port: Number(port) });
    const pair = { from: inner.remoteAddress, inner, outer };
    const end = () => {
      inner.destroy();
      outer.destroy();
      pairs.delete(pair);
    };
    pairs.add(pair);
    for (const socket of [inner, outer]) socket.setNoDelay().on('error', end).on('close', end);
    inner.pipe(outer).pipe(inner);
  });
}

const counts = { asked: 0, echoed: 0, failures: [] };

/** A new connection every 50 ms, and one that lives as long as it can and is asked for an echo every 50 ms. */
function client() {
  const [greetHost, greetPort, echoHost, echoPort] = args;
  const fail = (what) => (error) => counts.failures.push(`${new Date().toISOString()} ${what}: ${error.code ?? error.message}`);
  const ask = () => {
    let answer = '';
    const again = () => setTimeout(ask, PAUSE_MS);
    const socket = connect({ host: greetHost, port: Number(greetPort), timeout: 5_000 });
    socket.on('connect', () => socket.write('?')).on('data', (data) => (answer += data));
    socket.on('timeout', () => socket.destroy(new Error('no answer')));
    socket.on('end', () => (answer === '' ? fail('new')(new Error('empty')) : counts.asked++));
    socket.on('error', fail('new')).on('close', again);
  };
  const hold = () => {
    const socket = connect({ host: echoHost, port: Number(echoPort), timeout: 5_000 });
    let timer;
    const say = () => socket.write('?');
    socket.on('connect', say).on('data', () => {
      counts.echoed++;
      timer = setTimeout(say, PAUSE_MS);
    });
    socket.on('timeout', () => socket.destroy(new Error('no echo')));
    socket.on('end', () => fail('held')(new Error('ended'))).on('error', fail('held'));
    socket.on('close', () => {
      clearTimeout(timer);
      setTimeout(hold, PAUSE_MS);
    });
  };
  ask();
  hold();
}

const ends = [];
const since = Date.now();

function note(socket) {
  let why = 'ended';
  socket.on('error', (error) => (why = error.code)).on('close', () => ends.push(`${why} ${Date.now() - since}`));
  return socket.resume();
}

/** One socket that asks every 50 ms; what it is told, and refusals, in a row. */
function asker() {
  const [host, port] = args;
  const socket = createSocket('udp4');
  const say = (text) => ends.at(-1) !== text && ends.push(text);
  socket.on('message', (data) => say(String(data))).on('error', (error) => say(error.code));
  socket.connect(Number(port), host, () => setInterval(() => socket.send('?', () => {}), PAUSE_MS));
}

function answerer() {
  const socket = createSocket('udp4');
  socket.on('message', (_, { address, port }) => socket.send(args[0], port, address));
  socket.bind(0, '0.0.0.0', () => process.send(socket.address().port));
}

/** Says each text in angle brackets; `flood` gives 8 MiB and a good end, `bye` the end alone, and after `deaf` nothing more is read. */
function websocket() {
  const web = createWebServer();
  new WebSocketServer({ server: web }).on('connection', (socket, request) => {
    socket.on('error', () => {});
    socket.on('message', (data) => {
      const text = data.toString();
      if (text === 'flood') for (let piece = 0; piece < 128; piece++) socket.send(Buffer.alloc(65_536, piece));
      if (text === 'deaf') socket.pause();
      else if (text === 'flood' || text === 'bye') socket.close(1000, `after ${request.url}`);
      else socket.send(`<${text}>`);
    });
  });
  return web;
}

function listener() {
  if (kind === 'websocket') return websocket();
  if (kind === 'installer') return installer();
  if (kind === 'proxy') return proxy();
  if (kind === 'hold') return createServer(note);
  if (kind === 'echo') return createServer((socket) => socket.on('error', () => {}).pipe(socket));
  return createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(`${args[0]}\n`)));
}

if (kind === 'udp-answer') answerer();
else if (kind === 'udp-ask') {
  asker();
  process.send(0);
} else if (kind === 'idle') {
  const socket = note(connect(Number(args[1]), args[0]));
  socket.on('connect', () => process.send(0));
} else if (kind === 'client') {
  client();
  process.send(0);
} else {
  const server = listener();
  server.listen(0, '0.0.0.0', 4096, () => process.send(server.address().port));
}
process.on('message', (message) => {
  if (message === 'counts') process.send(counts);
  if (message === 'ends') process.send(ends);
  if (typeof message.cut !== 'string') return;
  const cut = [...pairs].filter(({ from }) => from === message.cut);
  for (const { inner, outer } of cut) {
    inner.resetAndDestroy();
    outer.resetAndDestroy();
  }
  process.send(cut.length);
});
process.on('disconnect', () => process.exit(0));
