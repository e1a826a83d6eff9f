import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';

/** gRPC by hand over node:http2, from https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. */
export const L2 = '/runos.nodeward.proto.l2sec.Nodeward';
export const L1 = '/runos.nodeward.proto.l1sec.Nodeward';

export function frame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Whole messages out of pieces. */
class Deframer {
  #left = Buffer.alloc(0);

  push(piece: Buffer): readonly Buffer[] {
    this.#left = Buffer.concat([this.#left, piece]);
    const messages: Buffer[] = [];
    while (this.#left.length >= 5) {
      const end = 5 + this.#left.readUInt32BE(1);
      if (this.#left.length < end) break;
      messages.push(this.#left.subarray(5, end));
      this.#left = this.#left.subarray(end);
    }
    return messages;
  }
}

export interface RawStatus {
  readonly code: number;
  readonly message: string;
  readonly trailers: IncomingHttpHeaders;
}

/** One call of a hand-made client. */
export class RawCall {
  readonly stream: ClientHttp2Stream;
  readonly headers: Promise<IncomingHttpHeaders>;
  readonly status: Promise<RawStatus>;
  readonly #messages: Buffer[] = [];
  #wake: () => void = () => {};

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream;
    const [headers, status] = [Promise.withResolvers<IncomingHttpHeaders>(), Promise.withResolvers<RawStatus>()];
    [this.headers, this.status] = [headers.promise, status.promise];
    const onTrailers = (trailers: IncomingHttpHeaders) =>
      status.resolve({
        code: Number(trailers['grpc-status']),
        message: decodeURI(String(trailers['grpc-message'] ?? '')),
        trailers,
      });
    stream.on('response', (answer) => {
      headers.resolve(answer);
      if (answer['grpc-status'] !== undefined) onTrailers(answer);
    });
    stream.on('trailers', onTrailers);
    stream.on('error', () => {});
    stream.on('close', () => {
      status.resolve({ code: -1, message: `closed ${stream.rstCode}`, trailers: {} });
      headers.resolve({});
      this.#wake();
    });
  }

  /** From now on it reads. */
  read(): this {
    const deframer = new Deframer();
    this.stream.on('data', (piece: Buffer) => {
      this.#messages.push(...deframer.push(piece));
      this.#wake();
    });
    return this;
  }

  send(message: Buffer): void {
    this.stream.write(frame(message));
  }

  async next(): Promise<Buffer> {
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) return message;
      if (this.stream.closed) throw new Error(`the stream is over: ${JSON.stringify(await this.status)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** A client that knows TLS, HTTP/2 and frames. */
export class RawClient {
  readonly session: ClientHttp2Session;

  constructor(port: number, tls: { readonly ca: string; readonly cert?: string; readonly key?: string }, more: object = {}) {
    // With the usual 10 MB it would refuse what comes while a message of 17 MiB waits to be sent.
    this.session = connect(`https://localhost:${port}`, { maxSessionMemory: 256, ...tls, ...more });
    this.session.on('error', () => {});
  }

  call(path: string, headers: OutgoingHttpHeaders = {}): RawCall {
    const base = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
    return new RawCall(this.session.request({ ...base, ...headers }));
  }

  async unary(path: string, request: Buffer): Promise<{ readonly status: RawStatus; readonly response: Buffer | undefined }> {
    const call = this.call(path).read();
    call.send(request);
    call.stream.end();
    const status = await call.status;
    return { status, response: status.code === 0 ? await call.next() : undefined };
  }

  close(): void {
    this.session.destroy();
  }
}

/** What a hand-made server shows of one call. */
export interface RawServed {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** Headers go out with the first message, as they do from an older server. */
  send(message: Buffer): void;
}

/** A server that knows TLS, HTTP/2 and frames, and sends no headers before it has something to say. */
export class RawServer {
  readonly served: RawServed[] = [];
  pings = 0;
  readonly #server: Http2SecureServer;
  readonly #sockets = new Set<Socket>();

  constructor(
    tls: { readonly ca: string; readonly cert: string; readonly key: string },
    onMessage: (message: Buffer, call: RawServed) => void,
  ) {
    this.#server = createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: true });
    this.#server.on('secureConnection', (socket: Socket) => this.#sockets.add(socket));
    this.#server.on('session', (session: ServerHttp2Session) => {
      session.on('error', () => {});
      session.on('ping', () => {
        this.pings++;
      });
    });
    this.#server.on('stream', (stream, headers) => this.#serve(stream, headers, onMessage));
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, onMessage: (message: Buffer, call: RawServed) => void): void {
    const deframer = new Deframer();
    const call: RawServed = {
      stream,
      headers,
      send: (message) => {
        if (!stream.headersSent)
          stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.write(frame(message));
      },
    };
    stream.on('error', () => {});
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('data', (piece: Buffer) => {
      for (const message of deframer.push(piece)) onMessage(message, call);
    });
    this.served.push(call);
  }
}
