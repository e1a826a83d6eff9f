import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { DnsServer } from '../../../src/adapters/dns/dns-server.js';
import { NativeDnsResponder } from '../../../src/adapters/dns/native-dns-responder.js';
import { addressPort } from '../../../src/domain/kernel/network.js';
import type { DnsResponder } from '../../../src/ports/dns/dns-responder.js';
import type { DnsTransport } from '../../../src/ports/driving/name-answers.js';
import { FakeLogger } from '../../fakes/fake-logger.js';

const open: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop();
});

/** It knows no zone, so it refuses every question. */
function responding(): DnsResponder {
  const responder = new NativeDnsResponder(loadAddon);
  responder.start();
  open.unshift(responder);
  return responder;
}

/** By TCP says back what it was asked, after a `t`; nothing to what begins with `-`. */
async function serve(at?: string, mayMove = false) {
  const listen = at ?? `127.0.0.1:${await freePort()}`;
  const asked: string[] = [];
  const answer = (query: Uint8Array, transport: DnsTransport) => {
    const text = Buffer.from(query).toString();
    asked.push(text);
    return text.startsWith('-') ? undefined : Buffer.from(`${transport[0]}${text}`);
  };
  const logger = new FakeLogger();
  const server = new DnsServer({
    listen: addressPort(listen) ?? 'off',
    mayMove,
    responder: responding(),
    answers: { answer },
    logger,
  });
  open.push(server);
  await server.start();
  const port = Number(server.address.split(':').at(-1));
  return { server, port, asked, logger };
}

/** Free when asked. */
async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  holder.close();
  await once(holder, 'close');
  return address !== null && typeof address === 'object' ? address.port : 0;
}

function framed(text: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** The answers, by their lengths, until there are so many or the connection ends. */
async function answers(socket: Socket, count: number): Promise<readonly string[]> {
  const found: string[] = [];
  let bytes = Buffer.alloc(0);
  for await (const more of socket) {
    bytes = Buffer.concat([bytes, more]);
    while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE()) {
      const end = 2 + bytes.readUInt16BE();
      found.push(bytes.subarray(2, end).toString());
      bytes = bytes.subarray(end);
    }
    if (found.length >= count) break;
  }
  return found;
}

/** Whether a question is answered (with REFUSED) within 300 ms. */
async function isAnswered(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.send(Buffer.from('00090100000100000000000001610000010001', 'hex'), port, '127.0.0.1');
    const answered = once(socket, 'message').then(([message]) => (message.readUInt16BE(2) & 0xf) === 5);
    return await Promise.race([answered, sleep(300, false)]);
  } finally {
    socket.close();
  }
}

test('by UDP the threads answer', async () => {
  const { port, asked } = await serve();
  expect(await isAnswered(port)).toBe(true);
  expect(asked).toEqual([]);
});

describe('TCP', () => {
  test('many in one piece, and one in many pieces', async () => {
    const { port } = await serve();
    const socket = await connected(port);
    socket.write(Buffer.concat([framed('one'), framed('two'), framed('three').subarray(0, 3)]));
    await sleep(20);
    for (const byte of framed('three').subarray(3)) socket.write(Buffer.of(byte));
    expect(await answers(socket, 3)).toEqual(['tone', 'ttwo', 'tthree']);
  });

  test('what is no query ends the connection, and no other', async () => {
    const { port } = await serve();
    const [bad, good] = [await connected(port), await connected(port)];
    bad.write(framed('-'));
    expect(await answers(bad, 1)).toEqual([]);
    good.write(framed('still'));
    expect(await answers(good, 1)).toEqual(['tstill']);
  });

  test('a peer that asks and never reads is not read from: its answers do not gather', async () => {
    const { port, asked } = await serve();
    const socket = await connected(port);
    socket.pause();
    const large = framed('x'.repeat(60_000));
    for (let number = 0; number < 400; number++) socket.write(large);
    await sleep(500);
    const read = asked.length;
    expect(read).toBeLessThan(300);
    await sleep(200);
    expect(asked.length).toBe(read);
    const all = await answers(socket, 400);
    expect(all).toHaveLength(400);
  });

  test('more than 256 connections are refused while those last', async () => {
    const { port } = await serve();
    const sockets = await Promise.all(Array.from({ length: 256 }, () => connected(port)));
    const one = await connected(port);
    one.write(framed('x'));
    // By a reset, where its question has come before the end.
    expect(await answers(one, 1).catch(() => [])).toEqual([]);
    sockets[0]?.destroy();
    await sleep(50);
    const next = await connected(port);
    next.write(framed('y'));
    expect(await answers(next, 1)).toEqual(['ty']);
    for (const socket of sockets) socket.destroy();
  });
});

describe('where it listens', () => {
  test('both or neither: where TCP is taken UDP is free again, and it can be started when the port is', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const address = holder.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    const server = new DnsServer({
      ...{ listen: addressPort(`127.0.0.1:${port}`) ?? 'off', mayMove: false, responder: responding() },
      ...{ answers: { answer: () => undefined }, logger: new FakeLogger() },
    });
    open.push(server);
    await expect(server.start()).rejects.toMatchObject({
      code: 'dns.not_served',
      facts: { problem: expect.stringContaining('EADDRINUSE') },
    });
    expect(server.address).toBe('');
    holder.close();
    await once(holder, 'close');
    await server.start();
    expect(server.address).toBe(`127.0.0.1:${port}`);
  });

  test('where UDP is taken TCP is free again', async () => {
    const holder = createSocket('udp4');
    const port = await freePort();
    holder.bind(port, '127.0.0.1');
    await once(holder, 'listening');
    await expect(serve(`127.0.0.1:${port}`)).rejects.toMatchObject({ code: 'dns.not_served' });
    const free = createServer().listen(port, '127.0.0.1');
    await once(free, 'listening');
    free.close();
    holder.close();
  });

  test('in dev mode another port will do, and the log says which', async () => {
    const first = await serve();
    const second = await serve(first.server.address, true);
    expect(second.port).not.toBe(first.port);
    expect(await isAnswered(second.port)).toBe(true);
    expect(second.logger.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining(`names are answered on ${second.server.address} instead`),
    ]);
  });

  test('off is off; stop ends connections, and may come twice and before the start', async () => {
    const off = new DnsServer({
      listen: 'off',
      mayMove: false,
      responder: responding(),
      answers: { answer: () => undefined },
      logger: new FakeLogger(),
    });
    await off.stop();
    await off.start();
    expect(off.address).toBe('');
    const { server, port } = await serve();
    const socket = await connected(port);
    const closed = once(socket, 'close');
    await server.stop();
    await server.stop();
    await closed;
    // The threads let go of the socket between two turns.
    await expect.poll(() => isAnswered(port)).toBe(false);
  });
});
