import type { TLSSocket } from 'node:tls';
import { type ServerInterceptingCallInterface, status } from '@grpc/grpc-js';

/** For the status to reach whoever reads. The connection of one that does not read ends with what waits for it. */
const GRACE_MS = 500;
/** The longest timer of Node, 24.8 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Whoever was judged by a certificate. */
export interface Judged {
  /** Wall clock, milliseconds: what they opened ends then. */
  readonly notAfter: number;
}

export interface OpenCall<P extends Judged> {
  readonly peer: P;
  readonly socket: TLSSocket;
  readonly call: ServerInterceptingCallInterface;
}

/** What was let in and goes on, of every method: it ends when its certificate is no longer good (engine.md F4). */
export class OpenCalls<P extends Judged> {
  readonly #now: () => number;
  readonly #open = new Map<OpenCall<P>, NodeJS.Timeout>();

  /** @param now the wall clock, milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** It ends with its certificate. Returns what is to be called when it has ended. */
  add(open: OpenCall<P>): () => void {
    this.#endAtExpiry(open);
    return () => {
      clearTimeout(this.#open.get(open));
      this.#open.delete(open);
    };
  }

  /** Those that `concerns` names get the status at once; within half a second nothing more goes out on their connections. */
  endWhere(concerns: (peer: P) => boolean, why: string): void {
    for (const open of [...this.#open.keys()]) if (concerns(open.peer)) end(open, why);
  }

  get size(): number {
    return this.#open.size;
  }

  #endAtExpiry(open: OpenCall<P>): void {
    const { notAfter } = open.peer;
    const left = notAfter - this.#now();
    const onTime = () => {
      if (left > LONGEST_TIMER_MS) this.#endAtExpiry(open);
      else end(open, `EXPIRED: the certificate of this call was valid until ${new Date(notAfter).toUTCString()}`);
    };
    this.#open.set(open, setTimeout(onTime, Math.min(Math.max(0, left), LONGEST_TIMER_MS)).unref());
  }
}

/** Its certificate is good for nothing any more, so that nothing else is lost with the connection. */
function end({ call, socket }: OpenCall<Judged>, details: string): void {
  call.sendStatus({ code: status.UNAUTHENTICATED, details });
  setTimeout(() => socket.destroy(), GRACE_MS).unref();
}
