import { AgentError } from '../../src/domain/kernel/errors.js';
import { heartbeatAnswer } from '../../src/domain/link/heartbeat.js';
import {
  type AgentFacts,
  HEARTBEAT_TYPE,
  type LinkMessage,
  type ServerFacts,
  type ServerMessage,
} from '../../src/domain/link/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Clock } from '../../src/ports/clock.js';
import type { ControlLink, LinkAddress, LinkEnd, LinkStream } from '../../src/ports/link/control-link.js';

/** Servers that a test starts and stops, by `host:port`. Nothing is there until a test says so. */
export class FakeControlLink implements ControlLink {
  readonly #clock: Clock;
  readonly #servers = new Map<string, FakeServer>();
  /** Every stream that was opened, the oldest first. */
  readonly streams: FakeLinkStream[] = [];
  /** `host:port` of every attempt. */
  readonly attempts: string[] = [];
  reloads = 0;
  closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  serve(address: LinkAddress, server: FakeServer = {}): void {
    this.#servers.set(nameOf(address), server);
  }

  /** Nothing listens there any more, and every connection to it dies. */
  kill(address: LinkAddress): void {
    const name = nameOf(address);
    this.#servers.delete(name);
    const error = new AgentError('link.unreachable', { problem: `${name}: the connection was reset` });
    for (const stream of this.streams) if (stream.name === name) stream.end({ what: 'connection', error, retryMs: undefined });
  }

  get newest(): FakeLinkStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('no stream was opened');
    return stream;
  }

  async open(address: LinkAddress, facts: AgentFacts, { signal }: CallOptions): Promise<LinkStream> {
    signal.throwIfAborted();
    const name = nameOf(address);
    this.attempts.push(name);
    const server = this.#servers.get(name);
    if (server === undefined) throw new AgentError('link.unreachable', { problem: `${name}: nothing listens there` });
    if (server.refuses !== undefined) throw server.refuses;
    const stream = new FakeLinkStream(name, facts, server, this.#clock);
    this.streams.push(stream);
    return stream;
  }

  reloadCertificate(): void {
    this.reloads++;
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const stream of this.streams) stream.close();
  }
}

/** How a server behaves. */
export interface FakeServer {
  /** Of its headers; an older one has none. */
  readonly facts?: ServerFacts;
  /** How late it answers heartbeats, milliseconds; never with `undefined` said. At once unless given. */
  readonly answersAfterMs?: number | undefined;
  /** Thrown by every opening. */
  readonly refuses?: Error;
  /** How every stream ends as soon as it is open. */
  readonly ends?: LinkEnd;
  readonly skewMs?: number;
}

export class FakeLinkStream implements LinkStream {
  readonly name: string;
  readonly agent: AgentFacts;
  readonly server: Promise<ServerFacts | undefined>;
  /** What the agent has sent, heartbeats too. */
  readonly sent: LinkMessage[] = [];
  readonly clockSkewMs: number | undefined;
  readonly #behaviour: FakeServer;
  readonly #clock: Clock;
  readonly #ended = Promise.withResolvers<LinkEnd>();
  readonly #queue: ServerMessage[] = [];
  #wake: () => void = () => {};
  #lastByteAt: number;
  #isEnded = false;

  constructor(name: string, agent: AgentFacts, behaviour: FakeServer, clock: Clock) {
    this.name = name;
    this.agent = agent;
    this.#behaviour = behaviour;
    this.#clock = clock;
    this.#lastByteAt = clock.monotonic();
    this.clockSkewMs = behaviour.skewMs;
    this.server = Promise.resolve(behaviour.facts);
    if (behaviour.ends !== undefined) this.end(behaviour.ends);
  }

  get ended(): Promise<LinkEnd> {
    return this.#ended.promise;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get messages(): AsyncIterable<ServerMessage> {
    return this.#read();
  }

  async send(message: LinkMessage, { signal }: CallOptions): Promise<boolean> {
    signal.throwIfAborted();
    if (this.#isEnded) return false;
    this.sent.push(message);
    if (message.type === HEARTBEAT_TYPE) this.#answer(message.tag);
    return true;
  }

  /** The server says it. */
  deliver(...messages: readonly ServerMessage[]): void {
    this.heard();
    this.#queue.push(...messages);
    this.#wake();
  }

  /** A byte comes in that is no message. */
  heard(): void {
    this.#lastByteAt = this.#clock.monotonic();
  }

  lastByteAt(): number {
    return this.#lastByteAt;
  }

  localAddress(): string {
    return '10.0.0.9';
  }

  close(): void {
    this.end({ what: 'closed', error: undefined, retryMs: undefined });
  }

  end(end: LinkEnd): void {
    this.#isEnded = true;
    this.#ended.resolve(end);
    this.#wake();
  }

  #answer(tag: string): void {
    const afterMs = 'answersAfterMs' in this.#behaviour ? this.#behaviour.answersAfterMs : 0;
    if (afterMs === undefined) return;
    const answer = () => this.deliver(heartbeatAnswer({ isHealthy: true, message: '' }, tag));
    if (afterMs === 0) answer();
    else void this.#clock.sleep(afterMs, { signal: new AbortController().signal }).then(answer);
  }

  async *#read(): AsyncGenerator<ServerMessage> {
    while (!this.#isEnded) {
      const message = this.#queue.shift();
      if (message !== undefined) {
        yield message;
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function nameOf({ host, port }: LinkAddress): string {
  return `${host}:${port}`;
}
