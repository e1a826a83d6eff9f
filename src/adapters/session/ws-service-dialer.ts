import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type RawData, WebSocket } from 'ws';
import { AgentError } from '../../domain/kernel/errors.js';
import { DIAL_MS, hostOf, type SessionEnd, type SessionTarget } from '../../domain/session/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ServiceDialer, ServiceSocket } from '../../ports/session/service-dialer.js';

/** A larger message ends its session: it would be held whole in memory before the first byte of it is passed on. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Of messages that nobody has read; the socket holds about as much again. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Normal closure, going away, and none said (RFC 6455 section 7.4.1). */
const GOOD_CODES: ReadonlySet<number> = new Set([1000, 1001, 1005]);
/** The connection was lost without a close. */
const LOST = 1006;

export interface WsServiceDialerOptions {
  /** How names are asked for; the machine's way unless given. */
  readonly resolve?: LookupFunction;
}

/** WebSockets (RFC 6455) without compression. */
export class WsServiceDialer implements ServiceDialer {
  readonly #resolve: LookupFunction;

  constructor({ resolve = lookup }: WsServiceDialerOptions = {}) {
    this.#resolve = resolve;
  }

  async open(target: SessionTarget, { signal }: CallOptions): Promise<ServiceSocket> {
    signal.throwIfAborted();
    const url = urlOf(target);
    const options = {
      headers: target.headers,
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      lookup: this.#resolve,
    };
    const socket = new WebSocket(url, [...target.subprotocols], options);
    const deadline = AbortSignal.timeout(DIAL_MS);
    try {
      // Made before it opens: a service may speak at once.
      const made = new WsServiceSocket(socket);
      await opened(socket, AbortSignal.any([signal, deadline]));
      return made;
    } catch (error) {
      socket.terminate();
      signal.throwIfAborted();
      const why = deadline.aborted ? `no answer within ${DIAL_MS / 1_000} s` : messageOf(error);
      throw new AgentError('session.unreachable', { problem: `${url}: ${why}` }, { cause: error });
    }
  }
}

/** @throws AgentError `session.unreachable` for what would lead elsewhere */
function urlOf(target: SessionTarget): string {
  const [host, port] = [hostOf(target), target.port];
  const url = URL.parse(`ws://${host}:${port}${target.path}`);
  if (url?.hostname === host && url.username === '' && url.password === '' && url.hash === '') return url.href;
  throw new AgentError('session.unreachable', { problem: `${host}: its path is none of a URL` });
}

async function opened(socket: WebSocket, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason);
  socket.once('open', resolve);
  socket.once('error', reject);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    socket.off('open', resolve);
    socket.off('error', reject);
  }
}

class WsServiceSocket implements ServiceSocket {
  readonly #socket: WebSocket;
  readonly #ended = Promise.withResolvers<SessionEnd>();
  readonly #unread: Uint8Array[] = [];
  #unreadBytes = 0;
  #wake: () => void = () => {};
  #failure: Error | undefined;
  #over = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => this.#received(data));
    // A failure is told by the close that follows it.
    socket.on('error', (error) => {
      this.#failure ??= error;
    });
    socket.once('close', (code, reason) => {
      this.#over = true;
      this.#ended.resolve(endOf(code, reason.toString('utf8'), this.#failure));
      this.#wake();
    });
  }

  get output(): AsyncIterable<Uint8Array> {
    return this.#read();
  }

  get ended(): Promise<SessionEnd> {
    return this.#ended.promise;
  }

  get unsent(): number {
    return this.#socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text, () => {});
  }

  close(): void {
    this.#socket.terminate();
    this.#unread.length = 0;
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) {
        this.#unreadBytes -= next.length;
        if (this.#unreadBytes < MAX_UNREAD_BYTES && this.#socket.isPaused) this.#socket.resume();
        yield next;
      } else if (this.#over) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  #received(data: RawData): void {
    const bytes = bytesOf(data);
    if (bytes.length === 0) return;
    this.#unread.push(bytes);
    this.#unreadBytes += bytes.length;
    if (this.#unreadBytes >= MAX_UNREAD_BYTES) this.#socket.pause();
    this.#wake();
  }
}

function bytesOf(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

function endOf(code: number, reason: string, failure: Error | undefined): SessionEnd {
  const said = reason === '' ? '' : `: ${reason}`;
  if (failure !== undefined) return { reason: `the connection to the service failed: ${failure.message}`, error: true };
  if (GOOD_CODES.has(code)) return { reason: `the service closed the session${said}`, error: false };
  if (code === LOST) return { reason: 'the connection to the service was lost', error: true };
  return { reason: `the service closed the session with code ${code}${said}`, error: true };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
