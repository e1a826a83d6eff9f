import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { HostPort, PortNumber } from '../../src/domain/kernel/network.js';

/** Says its name to whoever says anything, and keeps the connection; `end` ends it. */
export interface ApiServerOfTests {
  readonly name: string;
  readonly endpoint: HostPort;
  readonly sockets: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/** Until the test is over. */
export async function apiServer(name: string, host = '127.0.0.1'): Promise<ApiServerOfTests> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', () => socket.write(`${name}\n`));
  });
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('there is no port');
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => void server.close(resolve));
  };
  onTestFinished(close);
  return { name, endpoint: { host, port: address.port as PortNumber }, sockets, close };
}

/** One connection, one question, its answer. @throws Error when it is refused, reset, or not answered within 5 s */
export async function request(port: number, host = '127.0.0.1'): Promise<string> {
  const stream = await open(port, host);
  try {
    return await stream.ask();
  } finally {
    stream.close();
  }
}

export interface Stream {
  /** @throws Error when it was cut */
  ask(): Promise<string>;
  close(): void;
}

export async function open(port: number, host = '127.0.0.1'): Promise<Stream> {
  const socket = createConnection({ port, host });
  socket.on('error', () => {});
  const answer = (): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const timer = setTimeout(() => reject(new Error('no answer within 5 s')), 5_000);
    const onClose = () => reject(new Error('the connection was cut'));
    if (socket.destroyed || socket.readableEnded) onClose();
    socket.once('close', onClose);
    socket.once('data', (data: Buffer) => resolve(data.toString().trim()));
    return promise.finally(() => {
      clearTimeout(timer);
      socket.off('close', onClose);
    });
  };
  await once(socket, 'connect');
  return {
    ask: () => {
      const answered = answer();
      socket.write('who are you?\n');
      return answered;
    },
    close: () => socket.destroy(),
  };
}
