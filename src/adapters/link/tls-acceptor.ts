import { constants } from 'node:crypto';
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { AgentError } from '../../domain/kernel/errors.js';
import { TokenBucket } from '../../domain/link/rate-limit.js';

/** PEM. */
export interface ServerPair {
  /** The server's certificate, then its issuers but the root. */
  readonly certificate: string;
  readonly privateKey: string;
  /** Roots of the certificates that clients may show; empty where none is asked for. */
  readonly clientRoots: readonly string[];
}

export interface AcceptLimits {
  /** Of handshakes that begin; the others wait. */
  readonly perSecond: number;
  /** Connections without a first call. */
  readonly unfinished: number;
  /** Of the handshake and the first call's headers together. */
  readonly firstCallMs: number;
  /** Accepted, and not begun. */
  readonly waiting: number;
  /** And for how long. */
  readonly waitMs: number;
  /** In all. */
  readonly open: number;
}

/** Connections that the kernel holds for us. */
const BACKLOG = 4_096;

/**
 * An agent gives a connection up after 10 s, which does not show on one that waits unread: it would have its turn nevertheless. When more
 * than 2,000 came at once, each turn would be spent on one that is gone, and its agent would be waiting at the end again. Half of the 10 s
 * is left for the handshake.
 */
const WAIT_MS = 5_000;

export const usualLimits: AcceptLimits = {
  perSecond: 200,
  unfinished: 1_000,
  firstCallMs: 10_000,
  waiting: 4_096,
  waitMs: WAIT_MS,
  open: 20_000,
};

export interface TlsAcceptorParts {
  readonly listen: { readonly host: string; readonly port: number };
  readonly pair: () => ServerPair;
  readonly limits: AcceptLimits;
  /** The handshake is done; whether its certificate is good is judged at each call. */
  readonly onSecure: (socket: TLSSocket) => void;
}

/** Both ends of a connection as text: one at a time has them. */
export interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

export function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Ends): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/**
 * Started and stopped once. Accepts TLS connections at a pace that a restart of a whole fleet does not overrun (I2), and knows each by its ends. Node accepts all
 * that the kernel has, so what is over the pace waits here, unread, for its turn.
 */
export class TlsAcceptor {
  readonly #parts: TlsAcceptorParts;
  readonly #sockets = new Map<string, TLSSocket>();
  readonly #unfinished = new Map<string, NodeJS.Timeout>();
  readonly #raw = new Set<Socket>();
  /** Oldest first. */
  readonly #waiting: { readonly socket: Socket; readonly since: number }[] = [];
  readonly #counts = { accepted: 0, overflowed: 0, waitedTooLong: 0, timedOut: 0, failedHandshakes: 0 };
  /** With the last connection. */
  readonly #closed = Promise.withResolvers<void>();
  #listener: NetServer | undefined;
  #tls: TlsServer | undefined;
  #bucket: TokenBucket;
  #turn: NodeJS.Timeout | undefined;

  constructor(parts: TlsAcceptorParts) {
    this.#parts = parts;
    this.#bucket = this.#newBucket(0);
  }

  /** @throws AgentError `link.not_served` */
  async start(): Promise<void> {
    const { host, port } = this.#parts.listen;
    try {
      this.#tls = this.#tlsServer();
      const listener = createServer({ pauseOnConnect: true }, (socket) => this.#accept(socket));
      this.#listener = listener;
      await new Promise<void>((resolve, reject) => {
        listener.once('error', reject);
        listener.listen({ host, port, backlog: BACKLOG }, resolve);
      });
      // Running out of descriptors fails an accept; the next one is tried by itself.
      listener.on('error', () => {});
      this.#bucket = this.#newBucket(performance.now());
    } catch (error) {
      const problem = `${host}:${port}: ${error instanceof Error ? error.message : String(error)}`;
      throw new AgentError('link.not_served', { problem }, { cause: error });
    }
  }

  /** New connections get the pair as it is now. */
  reload(): void {
    this.#tls?.setSecureContext(this.#context());
  }

  /** No new connections; those that are open go on. */
  stopListening(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    clearTimeout(this.#turn);
    this.#turn = undefined;
    for (const { socket } of this.#waiting.splice(0)) socket.destroy();
    if (listener?.listening === true) listener.close(() => this.#closed.resolve());
    else this.#closed.resolve();
  }

  /** Resolves when all are closed, or the time is over. */
  async drained(ms: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, ms);
    await Promise.race([this.#closed.promise, late.promise]);
    clearTimeout(timer);
  }

  async stop(): Promise<void> {
    this.stopListening();
    for (const socket of this.#raw) socket.destroy();
    await this.#closed.promise;
  }

  /** 0 while it does not listen. */
  get port(): number {
    const address = this.#listener?.address();
    return isAddressInfo(address) ? address.port : 0;
  }

  counts() {
    return { ...this.#counts, waiting: this.#waiting.length, unfinished: this.#unfinished.size, open: this.#sockets.size };
  }

  /** The connection with these ends, which has a call now: no time is set to it any more. */
  called(ends: Ends): TLSSocket | undefined {
    const key = endsOf(ends);
    this.#finish(key);
    return this.#sockets.get(key);
  }

  #newBucket(now: number): TokenBucket {
    const { perSecond } = this.#parts.limits;
    return new TokenBucket({ perSecond, burst: perSecond }, now);
  }

  #context() {
    const { certificate, privateKey, clientRoots } = this.#parts.pair();
    return {
      cert: certificate,
      key: privateKey,
      minVersion: 'TLSv1.2' as const,
      // A ticket would let a connection in without its certificate's being shown.
      secureOptions: constants.SSL_OP_NO_TICKET,
      ...(clientRoots.length === 0 ? {} : { ca: [...clientRoots] }),
    };
  }

  #tlsServer(): TlsServer {
    const context = this.#context();
    const options = {
      ...context,
      ALPNProtocols: ['h2'],
      handshakeTimeout: this.#parts.limits.firstCallMs,
      requestCert: 'ca' in context,
      rejectUnauthorized: false,
    };
    const server = createTlsServer(options, (socket) => this.#secured(socket));
    server.on('tlsClientError', () => {
      this.#counts.failedHandshakes++;
    });
    return server;
  }

  #accept(socket: Socket): void {
    socket.on('error', () => {});
    const { waiting, open } = this.#parts.limits;
    if (this.#waiting.length >= waiting || this.#raw.size >= open) {
      this.#counts.overflowed++;
      socket.destroy();
      return;
    }
    this.#raw.add(socket);
    socket.once('close', () => this.#raw.delete(socket));
    this.#waiting.push({ socket, since: performance.now() });
    this.#takeTurns();
  }

  #takeTurns(): void {
    this.#turn = undefined;
    this.#dropOverdue();
    while (this.#waiting.length > 0 && this.#unfinished.size < this.#parts.limits.unfinished) {
      const now = performance.now();
      if (!this.#bucket.take(now)) {
        this.#turn = setTimeout(() => this.#takeTurns(), Math.max(1, this.#bucket.waitMs(now)));
        return;
      }
      const next = this.#waiting.shift();
      if (next !== undefined) this.#begin(next.socket);
    }
  }

  /** They cost no turn. */
  #dropOverdue(): void {
    const due = performance.now() - this.#parts.limits.waitMs;
    const inTime = this.#waiting.findIndex(({ since }) => since > due);
    for (const { socket } of this.#waiting.splice(0, inTime < 0 ? this.#waiting.length : inTime)) {
      this.#counts.waitedTooLong++;
      socket.destroy();
    }
  }

  #begin(socket: Socket): void {
    // Whoever has gone away has no ends any more.
    if (socket.destroyed || socket.remotePort === undefined) return void socket.destroy();
    const key = endsOf(socket);
    const onLate = () => {
      this.#counts.timedOut++;
      socket.destroy();
    };
    this.#unfinished.set(key, setTimeout(onLate, this.#parts.limits.firstCallMs));
    this.#counts.accepted++;
    socket.once('close', () => {
      this.#sockets.delete(key);
      this.#finish(key);
    });
    this.#tls?.emit('connection', socket);
  }

  #secured(socket: TLSSocket): void {
    socket.on('error', () => {});
    this.#sockets.set(endsOf(socket), socket);
    this.#parts.onSecure(socket);
  }

  #finish(key: string): void {
    const timer = this.#unfinished.get(key);
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#unfinished.delete(key);
    if (this.#turn === undefined) this.#takeTurns();
  }
}

function isAddressInfo(address: AddressInfo | string | null | undefined): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
