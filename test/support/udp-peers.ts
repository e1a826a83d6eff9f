import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

export interface UdpBackend extends AsyncDisposable {
  readonly port: number;
  /** Datagrams so far, and how many sockets they came from. */
  received(): number;
  sources(): number;
  /** Sends to whom it heard last. */
  push(message: string): void;
  close(): Promise<void>;
}

/** A server on a free port of 127.0.0.1; it answers each datagram with what `replies` gives. */
export async function udpBackend(replies: (message: Buffer) => readonly (string | Buffer)[]): Promise<UdpBackend> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
  const sources = new Set<string>();
  let received = 0;
  let last: RemoteInfo | undefined;
  socket.on('message', (message, from) => {
    received++;
    sources.add(`${from.address}:${from.port}`);
    last = from;
    for (const reply of replies(message)) socket.send(reply, from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  let open = true;
  const close = async () => {
    if (!open) return;
    open = false;
    socket.close();
    await once(socket, 'close');
  };
  return {
    port: socket.address().port,
    received: () => received,
    sources: () => sources.size,
    push: (message) => last !== undefined && socket.send(message, last.port, last.address),
    close,
    [Symbol.asyncDispose]: close,
  };
}

export const echoing = (message: Buffer) => [message];
export const saying = (name: string) => () => [name];

/** One socket that is connected to a service: it takes datagrams from that address alone. */
export class UdpClient implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #inbox: string[] = [];
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const arrived = (what: string) => {
      this.#inbox.push(what);
      this.#wake?.();
    };
    socket.on('message', (message) => arrived(message.toString()));
    socket.on('error', (error) => arrived('code' in error ? `${error.code}` : error.message));
  }

  static async to(port: number): Promise<UdpClient> {
    const socket = createSocket('udp4');
    const client = new UdpClient(socket);
    socket.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return client;
  }

  send(message: string | Buffer): void {
    this.#socket.send(message);
  }

  /** The next datagram, or the code of the error that came instead of one; `undefined` when none comes in time. */
  async next(patienceMs = 5_000): Promise<string | undefined> {
    if (this.#inbox.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, patienceMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#inbox.shift();
  }

  ask(message: string | Buffer, patienceMs?: number): Promise<string | undefined> {
    this.send(message);
    return this.next(patienceMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

/** A port to which nothing is bound. */
export async function deadUdpPort(): Promise<number> {
  const backend = await udpBackend(() => []);
  await backend.close();
  return backend.port;
}

/** Many clients in a process of their own, as its descriptors are not those of the proxy. */
export class UdpCrowd {
  readonly #process: ChildProcess;
  readonly #output: Promise<string>;

  /** See udp-crowd.mjs. */
  constructor(mode: 'hold' | 'churn', port: number, ...numbers: number[]) {
    const script = join(import.meta.dirname, 'udp-crowd.mjs');
    this.#process = spawn(process.execPath, [script, mode, `${port}`, ...numbers.map(String)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.#process.stdout === null) throw new Error('no output');
    this.#output = text(this.#process.stdout);
  }

  /** How many were answered rightly. */
  async answered(): Promise<number> {
    return Number(await this.#output);
  }
}
