import { type ClientDuplexStream, type Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { serverMessage, wireMessage } from '../../domain/link/envelope.js';
import { serverFacts } from '../../domain/link/headers.js';
import { type LinkMessage, MAX_SENT_BYTES, type ServerFacts, type ServerMessage } from '../../domain/link/model.js';
import type { LinkEnd, LinkStream, SendOptions } from '../../ports/link/control-link.js';
import { FromNodeAgent, ToNodeAgent } from '../generated/runos/nodeward/proto/l2sec/l2sec.js';
import type { LinkConnection } from './link-connection.js';
import { linkEnd, readerOf } from './link-status.js';
import { WriteQueue } from './write-queue.js';

/** The `date` header is cut to the second. */
const HALF_A_SECOND_MS = 500;

export interface LinkStreamParts {
  readonly call: ClientDuplexStream<Buffer, Buffer>;
  readonly connection: LinkConnection;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
  readonly onHeaders: (facts: ServerFacts | undefined) => void;
  readonly onMalformed: () => void;
  readonly onEnded: () => void;
}

/** One call of `NodeAgentStream`. What it reads are bytes: a message that cannot be decoded costs that message, and not the stream. */
export class GrpcLinkStream implements LinkStream {
  readonly #parts: LinkStreamParts;
  readonly #server = Promise.withResolvers<ServerFacts | undefined>();
  readonly #ended = Promise.withResolvers<LinkEnd>();
  readonly #queue: WriteQueue;
  #closed = false;
  #clockSkewMs: number | undefined;

  constructor(parts: LinkStreamParts) {
    this.#parts = parts;
    const { call } = parts;
    this.#queue = new WriteQueue(
      (bytes, done) => void call.write(bytes, done),
      Number.POSITIVE_INFINITY,
      () => {},
    );
    call.once('metadata', (metadata) => this.#onHeaders(metadata));
    call.once('status', (object) => this.#onStatus(object));
    // Said by the status as well.
    call.on('error', () => {});
  }

  get server(): Promise<ServerFacts | undefined> {
    return this.#server.promise;
  }

  get ended(): Promise<LinkEnd> {
    return this.#ended.promise;
  }

  get messages(): AsyncIterable<ServerMessage> {
    return this.#read();
  }

  get clockSkewMs(): number | undefined {
    return this.#clockSkewMs;
  }

  async send(message: LinkMessage, { signal, behind }: SendOptions): Promise<boolean> {
    signal.throwIfAborted();
    const { buffer, byteOffset, byteLength } = FromNodeAgent.encode(wireMessage(message)).finish();
    // As they are: a reply may have 12 MiB.
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    if (bytes.length > MAX_SENT_BYTES) {
      throw new AgentError('link.too_large', { problem: `${message.type} has ${bytes.length} bytes, ${MAX_SENT_BYTES} at most` });
    }
    return this.#queue.send(bytes, behind);
  }

  lastByteAt(): number {
    return this.#parts.connection.lastByteAt();
  }

  localAddress(): string {
    return this.#parts.connection.localAddress();
  }

  close(): void {
    this.#closed = true;
    this.#parts.call.cancel();
  }

  async *#read(): AsyncGenerator<ServerMessage> {
    try {
      for await (const bytes of this.#parts.call) {
        const message = decode(bytes);
        if (this.#closed) return;
        if (message === undefined) this.#parts.onMalformed();
        else yield message;
      }
    } catch {
      // `ended` says why.
    }
  }

  #onHeaders(metadata: Metadata): void {
    const read = readerOf(metadata);
    const date = Date.parse(read('date') ?? '');
    if (!Number.isNaN(date)) this.#clockSkewMs = date + HALF_A_SECOND_MS - this.#parts.now();
    const facts = serverFacts(read);
    this.#parts.onHeaders(facts);
    this.#server.resolve(facts);
  }

  #onStatus(object: StatusObject): void {
    const { connection, onEnded } = this.#parts;
    const died = connection.died || (object.code === status.UNAVAILABLE && object.details === 'Connection dropped');
    const byUs: LinkEnd = { what: 'closed', error: undefined, retryMs: undefined };
    this.#ended.resolve(this.#closed ? byUs : linkEnd(object, died));
    this.#server.resolve(undefined);
    this.#queue.end();
    onEnded();
  }
}

function decode(bytes: Buffer): ServerMessage | undefined {
  try {
    return serverMessage(ToNodeAgent.decode(bytes));
  } catch {
    return undefined;
  }
}
