import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { judgeAddress } from '../../../src/domain/outbound/guard.js';
import type { ThrowawayCertificate } from '../../support/throwaway-certificate.js';

/** Stands for an address out there. */
export const PUBLIC = '127.0.0.1';
/** Stays what it is: this machine. */
export const FORBIDDEN = '127.0.0.2';

export const judge = (address: string) => (address === PUBLIC ? undefined : judgeAddress(address));

/** A server that a test has started. */
export interface Listening {
  readonly port: number;
  /** Of connections that were accepted. */
  readonly accepted: () => number;
}

/** Servers of this machine, closed together. */
export class WebServers {
  readonly #closers: (() => Promise<void>)[] = [];

  http(handle: RequestListener, host = PUBLIC): Promise<Listening> {
    return this.#listen(createHttpServer(handle), host);
  }

  https(certificate: ThrowawayCertificate, handle: RequestListener): Promise<Listening> {
    return this.#listen(createHttpsServer({ ...certificate }, handle), PUBLIC);
  }

  tcp(onConnection: (socket: Socket) => void): Promise<Listening> {
    return this.#listen(createServer(onConnection), PUBLIC);
  }

  /** Nobody listens there any more. */
  async freePort(): Promise<number> {
    const { port } = await this.tcp(() => {});
    await this.#closers.pop()?.();
    return port;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0)) await close();
  }

  async #listen(server: Server, host: string): Promise<Listening> {
    const sockets = new Set<Socket>();
    let accepted = 0;
    server.on('connection', (socket: Socket) => {
      accepted++;
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    this.#closers.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    return { port: (server.address() as AddressInfo).port, accepted: () => accepted };
  }
}

/** What was asked, as one value: `POST /path host=… <body>`. */
export async function asked(request: IncomingMessage): Promise<string> {
  const body = Buffer.concat(await request.toArray()).toString();
  return [request.method, request.url, request.headers.host, body].filter((part) => part !== '').join(' ');
}

export function redirect(response: ServerResponse, status: number, location: string): void {
  response.writeHead(status, { location }).end('elsewhere');
}
