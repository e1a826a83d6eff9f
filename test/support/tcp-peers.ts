import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Backend extends AsyncDisposable {
  readonly port: number;
  /** Connections so far. */
  accepted(): number;
}

/** A server on a free port of 127.0.0.1; `serve` gets every connection. */
export async function backend(serve: (socket: Socket) => void): Promise<Backend> {
  let accepted = 0;
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    serve(socket);
  });
  await listening(server, 0);
  return {
    port: portOf(server),
    accepted: () => accepted,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Sends back what comes, and ends when the other side ends. */
export function echoBackend(): Promise<Backend> {
  return backend((socket) => socket.pipe(socket));
}

export async function listening(server: Server, port: number): Promise<Server> {
  server.listen(port, '127.0.0.1', 4096);
  await once(server, 'listening');
  return server;
}

export function portOf(server: Server): number {
  const at = server.address();
  if (at === null || typeof at === 'string') throw new Error('the server does not listen on a port');
  return at.port;
}

/** A port on which nothing listens. */
export async function deadPort(): Promise<number> {
  const server = await listening(createServer(), 0);
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}

export async function open(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  await once(socket, 'connect');
  return socket;
}

/** The answer to `message` on a connection that stays. */
export async function ask(socket: Socket, message: string): Promise<string> {
  const answer = once(socket, 'data');
  socket.write(message);
  const [chunk] = await answer;
  return String(chunk);
}

/** One whole exchange on a connection of its own: everything that comes after `message` and a half-close. */
export async function exchange(port: number, message: string): Promise<string> {
  const socket = await open(port);
  socket.end(message);
  return text(socket);
}

/** How a connection ends: the error's code, or `end`. */
export async function endOf(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  socket.on('end', () => resolve('end'));
  socket.resume();
  return promise;
}

/** `run` for each of 0 … count-1, `width` at once. */
export async function inParallel(count: number, width: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: width }, lane));
}
