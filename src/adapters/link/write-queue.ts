/** Hands bytes to a stream; `done` is called when its transport has taken them, or with an error. */
export type Write = (bytes: Buffer, done: (error?: Error | null) => void) => void;

interface Waiting {
  readonly bytes: Buffer;
  readonly settle: (taken: boolean) => void;
}

/**
 * Messages on their way to one stream, one at a time: a stream of grpc-js takes sixteen of any size before it says that it is full, and
 * does not tell how many bytes wait in it.
 */
export class WriteQueue {
  readonly #write: Write;
  readonly #limit: number;
  readonly #onFull: () => void;
  readonly #waiting: Waiting[] = [];
  /** Sent while nothing else waits. */
  readonly #behind: Waiting[] = [];
  #writing: Waiting | undefined;
  #bytes = 0;
  #held = false;
  #ended = false;

  /** `onFull` is called when more than `limit` bytes wait behind the message that is being written. */
  constructor(write: Write, limit: number, onFull: () => void) {
    this.#write = write;
    this.#limit = limit;
    this.#onFull = onFull;
  }

  /** Bytes that wait behind the message that is being written. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * In the order of the calls; those with `behind` in an order of their own, each when nothing else waits. True when the transport has taken
   * it, false when the queue has ended before.
   */
  send(bytes: Buffer, behind = false): Promise<boolean> {
    if (this.#ended) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const lane = behind ? this.#behind : this.#waiting;
    lane.push({ bytes, settle: resolve });
    this.#bytes += bytes.length;
    this.#next();
    if (this.#bytes > this.#limit) this.#onFull();
    return promise;
  }

  /** From now on messages wait. */
  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#next();
  }

  /** What waits is not sent any more. Safe twice. */
  end(): void {
    this.#ended = true;
    const left = [...this.#waiting.splice(0), ...this.#behind.splice(0)];
    this.#bytes = 0;
    this.#writing?.settle(false);
    for (const { settle } of left) settle(false);
  }

  #next(): void {
    if (this.#writing !== undefined || this.#held || this.#ended) return;
    const next = this.#waiting.shift() ?? this.#behind.shift();
    if (next === undefined) return;
    this.#writing = next;
    this.#bytes -= next.bytes.length;
    this.#write(next.bytes, (error) => {
      next.settle(error === undefined || error === null);
      this.#writing = undefined;
      this.#next();
    });
  }
}
