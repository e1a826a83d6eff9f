import type { StreamParty } from '../../domain/link/fence.js';
import type { AgentFacts, Epoch, ServerMessage } from '../../domain/link/model.js';
import type { StreamRecord } from '../../domain/link/stream-record.js';
import type { NodeIdentity, NodeStream, PeerNode, StreamEnd } from '../../ports/driving/node-streams.js';
import type { Condition } from '../../ports/store/control-store.js';
import type { NodeSession } from './node-session.js';

interface OpenSessionParts {
  readonly stream: NodeStream;
  readonly record: StreamRecord;
  readonly fence: Condition;
  readonly holdMs: () => number;
}

/** A stream that has been the current one of its node. */
export class OpenSession implements NodeSession {
  readonly record: StreamRecord;
  readonly fence: Condition;
  readonly holdMs: () => number;
  readonly #stream: NodeStream;
  readonly #over = new AbortController();
  #closed = false;
  #waiting: ((sign: boolean) => void)[] = [];

  constructor({ stream, record, fence, holdMs }: OpenSessionParts) {
    this.#stream = stream;
    this.record = record;
    this.fence = fence;
    this.holdMs = holdMs;
  }

  get node(): PeerNode {
    return this.#stream.node;
  }

  get identity(): NodeIdentity {
    return this.#stream.node.identity;
  }

  get agent(): AgentFacts | undefined {
    return this.#stream.agent;
  }

  get epoch(): Epoch {
    return this.record.epoch;
  }

  get forgottenBefore(): Epoch {
    return this.record.forgottenBefore;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get party(): StreamParty {
    return { agent: this.#stream.agent, address: this.#stream.node.address };
  }

  async send(message: ServerMessage): Promise<boolean> {
    return !this.#over.signal.aborted && this.#stream.send(message);
  }

  /** Also when another has taken its place. */
  answer(message: ServerMessage): Promise<boolean> {
    return this.#stream.send(message);
  }

  end(reason: StreamEnd): void {
    this.#stream.end(reason);
    this.#finish();
  }

  /** It has said something. */
  sign(): void {
    this.#settle(true);
  }

  /** Whether it says something before it is over. */
  nextSign(): Promise<boolean> {
    if (this.#over.signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** False when it was closed before. */
  close(): boolean {
    this.#finish();
    const first = !this.#closed;
    this.#closed = true;
    return first;
  }

  #finish(): void {
    this.#settle(false);
    this.#over.abort();
  }

  #settle(sign: boolean): void {
    for (const resolve of this.#waiting) resolve(sign);
    this.#waiting = [];
  }
}
