import type { Socket } from 'node:net';

/** From one query to the next, and for each of them to come whole (RFC 7766, 6.2.3: of the order of seconds). */
const IDLE_MS = 10_000;
/** Answers that a peer does not read: it is not read from either until it does. */
const MOST_WAITING_BYTES = 256 * 1024;
const LENGTH_BYTES = 2;

/** The queries of one connection, each behind its length, answered in the order in which they came (RFC 7766, 6.2.1.1). */
export class TcpQueries {
  readonly #socket: Socket;
  readonly #answer: (query: Uint8Array) => Uint8Array | undefined;
  #received: Buffer = Buffer.alloc(0);
  #idle: NodeJS.Timeout | undefined;

  constructor(socket: Socket, answer: (query: Uint8Array) => Uint8Array | undefined) {
    this.#socket = socket;
    this.#answer = answer;
  }

  /** Until the connection ends. */
  serve(): void {
    this.#waitForNext();
    this.#socket.on('data', (bytes: Buffer) => this.#take(bytes));
    this.#socket.on('drain', () => {
      this.#socket.resume();
      this.#take(Buffer.alloc(0));
    });
    this.#socket.on('error', () => this.#socket.destroy());
    this.#socket.once('close', () => clearTimeout(this.#idle));
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    for (let query = this.#next(); query !== undefined; query = this.#next()) {
      this.#waitForNext();
      const answered = this.#answer(query);
      // Nothing is owed to what is no query; by TCP its sender would wait for it.
      if (answered === undefined) {
        this.#socket.destroy();
        return;
      }
      this.#send(answered);
    }
  }

  /** The oldest that is whole, unless its answer would have to wait. */
  #next(): Uint8Array | undefined {
    if (this.#socket.writableLength > MOST_WAITING_BYTES) {
      this.#socket.pause();
      return undefined;
    }
    if (this.#received.length < LENGTH_BYTES) return undefined;
    const end = LENGTH_BYTES + this.#received.readUInt16BE(0);
    if (this.#received.length < end) return undefined;
    const query = this.#received.subarray(LENGTH_BYTES, end);
    this.#received = this.#received.subarray(end);
    return query;
  }

  #send(answer: Uint8Array): void {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(answer.length, 0);
    this.#socket.write(Buffer.concat([length, answer]));
  }

  #waitForNext(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#socket.destroy(), IDLE_MS);
    this.#idle.unref();
  }
}
