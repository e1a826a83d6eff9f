import type { ServerDuplexStream } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { linkMessage, wireServerMessage } from '../../domain/link/envelope.js';
import { agentFacts, serverHeaders } from '../../domain/link/headers.js';
import { type AgentFacts, type LinkMessage, MAX_SENT_BYTES, type ServerMessage } from '../../domain/link/model.js';
import type { NodeStream, NodeStreamHandler, NodeStreams, PeerNode, StreamEnd } from '../../ports/driving/node-streams.js';
import { FromNodeAgent, ToNodeAgent } from '../generated/runos/nodeward/proto/l2sec/l2sec.js';
import { toStatus } from '../grpc/grpc-errors.js';
import { readerOf, statusOfEnd, toMetadata } from './link-status.js';
import type { Peer } from './peer-interceptor.js';
import { WriteQueue } from './write-queue.js';

/** What waits for one node (I1). */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;
/** A stream that is ended from our side and whose reader does not take even that goes with its connection. */
const GRACE_MS = 5_000;

export type NodeCall = ServerDuplexStream<Buffer, Buffer>;

export interface NodeStreamCallParts {
  readonly call: NodeCall;
  readonly peer: Peer;
  readonly streams: NodeStreams;
  /** Whether the message may go on to the handler. */
  readonly admit: (node: PeerNode, message: LinkMessage) => boolean;
  readonly onMalformed: () => void;
  /** It is ended from our side; `over` resolves when its status is on the way, or its connection gone. */
  readonly onEnding: (over: Promise<void>) => void;
  /** What a handler threw; the stream goes on. */
  readonly onFault: (error: unknown) => void;
}

/** One call of `NodeAgentStream` on its way through the control plane. */
export class NodeStreamCall implements NodeStream {
  readonly node: PeerNode;
  readonly agent: AgentFacts | undefined;
  readonly #parts: NodeStreamCallParts;
  readonly #queue: WriteQueue;
  readonly #gone = Promise.withResolvers<void>();
  #handler: NodeStreamHandler | undefined;
  #ended = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: NodeStreamCallParts) {
    this.#parts = parts;
    this.node = parts.peer.node;
    this.agent = agentFacts(readerOf(parts.call.metadata));
    const onFull = () => this.end({ status: 'slow', message: `SLOW: more than ${MOST_WAITING_BYTES} bytes wait to be read` });
    this.#queue = new WriteQueue((bytes, done) => void parts.call.write(bytes, done), MOST_WAITING_BYTES, onFull);
  }

  /** Once. Nothing is sent before the headers with the epoch, and nothing is read before them. */
  async run(): Promise<void> {
    const { call, streams } = this.#parts;
    this.#queue.hold();
    call.on('error', () => {});
    call.once('cancelled', () => this.#over());
    // The agent has nothing more to say.
    call.once('end', () => this.#finish());
    try {
      const { facts, handler } = await streams.open(this);
      if (this.#closed || this.#ended) return handler.closed();
      this.#handler = handler;
      call.sendMetadata(toMetadata(serverHeaders(facts)));
      this.#queue.release();
      call.on('data', (bytes: Buffer) => this.#received(bytes));
    } catch (error) {
      this.#fail(error);
    }
  }

  async send(message: ServerMessage): Promise<boolean> {
    if (this.#ended || this.#closed) return false;
    const { buffer, byteOffset, byteLength } = ToNodeAgent.encode(wireServerMessage(message)).finish();
    // As they are: a reply may have 12 MiB.
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    if (bytes.length > MAX_SENT_BYTES) {
      throw new AgentError('link.too_large', { problem: `${message.type} has ${bytes.length} bytes, ${MAX_SENT_BYTES} at most` });
    }
    return this.#queue.send(bytes);
  }

  end(reason: StreamEnd): void {
    if (this.#ended || this.#closed) return;
    this.#stop();
    this.#parts.call.emit('error', statusOfEnd(reason));
  }

  #fail(error: unknown): void {
    if (this.#ended || this.#closed) return;
    if (!(error instanceof AgentError)) this.#parts.onFault(error);
    this.#stop();
    this.#parts.call.emit('error', toStatus(error));
  }

  #finish(): void {
    if (this.#ended || this.#closed) return;
    this.#stop();
    this.#parts.call.end();
  }

  #stop(): void {
    this.#ended = true;
    this.#queue.end();
    clearTimeout(this.#timer);
    this.#parts.onEnding(this.#gone.promise);
    this.#timer = setTimeout(() => this.#parts.peer.socket.destroy(), GRACE_MS);
    process.nextTick(() => this.#tellClosed());
  }

  /** The call is over, whoever ended it. */
  #over(): void {
    this.#closed = true;
    this.#gone.resolve();
    this.#queue.end();
    clearTimeout(this.#timer);
    this.#tellClosed();
  }

  #tellClosed(): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#safely(() => handler?.closed());
  }

  #received(bytes: Buffer): void {
    const { admit, onMalformed } = this.#parts;
    const message = decode(bytes);
    const handler = this.#handler;
    if (message === undefined) onMalformed();
    else if (handler !== undefined && admit(this.node, message)) this.#safely(() => handler.received(message));
  }

  #safely(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#parts.onFault(error);
    }
  }
}

function decode(bytes: Buffer): LinkMessage | undefined {
  try {
    return linkMessage(FromNodeAgent.decode(bytes));
  } catch {
    return undefined;
  }
}
