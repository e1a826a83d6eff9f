import type { ServerWritableStream } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Clock } from '../../ports/clock.js';

/** What waits in the transport of one reader (the rest waits where it is, shared): a message more than this at most. */
const MOST_WAITING_BYTES = 1024 * 1024;
/** How often a reader that does not read is judged. */
const LOOK_MS = 1_000;

/** Where the messages of one call go. */
export interface Outlet {
  /**
   * Resolves when there is room for more, or the reader has gone. While there is none, `tooSlow` is asked each second.
   * @throws AgentError `log.slow` when it says so
   */
  write(message: Uint8Array, tooSlow: () => boolean): Promise<void>;
}

/**
 * The answers of a streaming call. `writableLength` of grpc-js counts messages, sixteen of which are let in, whatever their size: so bytes
 * are counted here, and its own word (`write`, `drain`) is obeyed as well (engine.md I1).
 */
export class CallOutlet implements Outlet {
  readonly #call: ServerWritableStream<unknown, Uint8Array>;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  #waiting = 0;
  #full = false;
  #wake: () => void = () => {};

  constructor(call: ServerWritableStream<unknown, Uint8Array>, signal: AbortSignal, clock: Clock) {
    this.#call = call;
    this.#signal = signal;
    this.#clock = clock;
    call.on('drain', () => {
      this.#full = false;
      this.#wake();
    });
    signal.addEventListener('abort', () => this.#wake(), { once: true });
  }

  async write(message: Uint8Array, tooSlow: () => boolean): Promise<void> {
    if (this.#signal.aborted) return;
    this.#waiting += message.length;
    const taken = () => {
      this.#waiting -= message.length;
      this.#wake();
    };
    if (!this.#call.write(message, taken)) this.#full = true;
    while (this.#blocked) {
      if (tooSlow()) throw new AgentError('log.slow', { problem: 'the reader does not take what it is sent' });
      await this.#roomOrLook();
    }
  }

  get #blocked(): boolean {
    return !this.#signal.aborted && (this.#full || this.#waiting > MOST_WAITING_BYTES);
  }

  async #roomOrLook(): Promise<void> {
    const look = new AbortController();
    this.#wake = () => look.abort();
    await this.#clock.sleep(LOOK_MS, { signal: look.signal }).catch(() => {});
    this.#wake = () => {};
  }
}
