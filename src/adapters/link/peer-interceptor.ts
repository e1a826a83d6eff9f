import type { TLSSocket } from 'node:tls';
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import { OpenCalls } from './open-calls.js';
import type { Ends } from './tls-acceptor.js';

const REFUSED_MS = 1_000;

/** Chain, validity, revocation and role of the certificate that a connection has shown, at this moment. A text says why it is refused. */
export type JudgePeer = (socket: TLSSocket) => PeerNode | string;

export interface Peer {
  readonly node: PeerNode;
  readonly socket: TLSSocket;
}

/** Who calls, of every call of one server. */
export class Peers {
  /** All that go on. */
  readonly open: OpenCalls;
  readonly #now: () => number;
  readonly #byMetadata = new WeakMap<Metadata, Peer>();
  /** Connections that have had a call that was not refused. */
  readonly #known = new WeakSet<TLSSocket>();

  /** @param now the wall clock, milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.open = new OpenCalls(now);
  }

  /** @throws Error for a call that no interceptor has seen: there is no way into a method without it */
  of(call: { readonly metadata: Metadata }): Peer {
    const peer = this.#byMetadata.get(call.metadata);
    if (peer === undefined) throw new Error('a call without a judged peer');
    return peer;
  }

  /** Judges every call and answers those that are refused: the method is not entered. */
  interceptor(called: (ends: Ends) => TLSSocket | undefined, judge: JudgePeer): ServerInterceptor {
    return (_method, call) => {
      const socket = called(call.getConnectionInfo());
      const verdict = socket === undefined ? 'the connection is gone' : judge(socket);
      if (socket === undefined || typeof verdict === 'string') {
        if (socket !== undefined) this.#showOut(socket);
        return refusing(call, String(verdict), socket, this.#now());
      }
      this.#known.add(socket);
      const ended = this.open.add({ node: verdict, socket, call });
      return new ServerInterceptingCall(call, {
        start: (next) =>
          next({
            onReceiveMetadata: (metadata, pass) => {
              this.#byMetadata.set(metadata, { node: verdict, socket });
              pass(metadata);
            },
            onCancel: ended,
          }),
      });
    };
  }

  /** A stranger's connection is closed when it has had its answer; streams of one that was good once live on (F5). */
  #showOut(socket: TLSSocket): void {
    if (!this.#known.has(socket)) setTimeout(() => socket.destroy(), REFUSED_MS).unref();
  }
}

/** With what an agent needs to know whose clock is wrong (F3). */
function refusing(
  call: ServerInterceptingCallInterface,
  why: string,
  socket: TLSSocket | undefined,
  now: number,
): ServerInterceptingCall {
  const clock = `the server's clock says ${new Date(now).toUTCString()}`;
  const certificate = socket?.getPeerCertificate();
  const validity =
    certificate?.valid_from === undefined ? '' : `valid from ${certificate.valid_from} to ${certificate.valid_to}; `;
  const details = `${why} (${validity}${clock})`;
  return new ServerInterceptingCall(call, { start: () => call.sendStatus({ code: status.UNAUTHENTICATED, details }) });
}
