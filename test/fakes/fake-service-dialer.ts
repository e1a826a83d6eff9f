import { AgentError } from '../../src/domain/kernel/errors.js';
import { hostOf, type SessionEnd, type SessionTarget } from '../../src/domain/session/model.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ServiceDialer, ServiceSocket } from '../../src/ports/session/service-dialer.js';

/** Answers text with text; `undefined` says nothing. */
export type FakeService = (text: string, socket: FakeServiceSocket) => string | undefined;

/** Services that a test starts, by `host:port`. */
export class FakeServiceDialer implements ServiceDialer {
  readonly #services = new Map<string, FakeService>();
  /** Every connection that was made, the oldest first. */
  readonly sockets: FakeServiceSocket[] = [];
  readonly targets: SessionTarget[] = [];
  /** While it is set, a dial waits for it. */
  gate: Promise<void> | undefined;

  serve(place: string, service: FakeService = () => undefined): void {
    this.#services.set(place, service);
  }

  get newest(): FakeServiceSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error('nothing was dialled');
    return socket;
  }

  /** Connections that nobody has closed. */
  get openCount(): number {
    return this.sockets.filter(({ isOver }) => !isOver).length;
  }

  async open(target: SessionTarget, { signal }: CallOptions): Promise<ServiceSocket> {
    signal.throwIfAborted();
    this.targets.push(target);
    if (this.gate !== undefined) await unlessAborted(this.gate, signal);
    signal.throwIfAborted();
    const place = `${hostOf(target)}:${target.port}`;
    const service = this.#services.get(place);
    if (service === undefined) throw new AgentError('session.unreachable', { problem: `${place}: nothing listens there` });
    const socket = new FakeServiceSocket(service);
    this.sockets.push(socket);
    return socket;
  }
}

export class FakeServiceSocket implements ServiceSocket {
  /** What it was given. */
  readonly texts: string[] = [];
  readonly #service: FakeService;
  readonly #unread: Uint8Array[] = [];
  readonly #ended = Promise.withResolvers<SessionEnd>();
  #wake: () => void = () => {};
  isOver = false;
  /** A service that does not read has this set by its test. */
  unsent = 0;

  constructor(service: FakeService) {
    this.#service = service;
  }

  get output(): AsyncIterable<Uint8Array> {
    return this.#read();
  }

  get ended(): Promise<SessionEnd> {
    return this.#ended.promise;
  }

  /** Messages that nobody has read. */
  get unread(): number {
    return this.#unread.length;
  }

  send(text: string): void {
    if (this.isOver) return;
    this.texts.push(text);
    const answer = this.#service(text, this);
    if (answer !== undefined) this.say(answer);
  }

  /** The service says it. */
  say(output: string | Uint8Array): void {
    if (this.isOver) return;
    this.#unread.push(typeof output === 'string' ? new TextEncoder().encode(output) : output);
    this.#wake();
  }

  /** The service ends it. */
  end(end: SessionEnd = { reason: 'the service closed the session', error: false }): void {
    this.isOver = true;
    this.#ended.resolve(end);
    this.#wake();
  }

  close(): void {
    this.#unread.length = 0;
    this.end({ reason: 'closed by us', error: false });
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) yield next;
      else if (this.isOver) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  await Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', onAbort));
}
