import type { TLSSocket } from 'node:tls';
import {
  type Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import { toStatus } from '../grpc/grpc-errors.js';
import { type Judged, OpenCalls } from './open-calls.js';
import type { Ends } from './tls-acceptor.js';

const REFUSED_MS = 1_000;

/** Chain, validity, revocation and role of the certificate that a connection has shown, at this moment. A text says why it is refused. */
export type JudgePeer<Refusal = string, P = PeerNode> = (socket: TLSSocket) => P | Refusal;

export interface Peer<P = PeerNode> {
  readonly node: P;
  readonly socket: TLSSocket;
}

/** Who calls, of every call of one server. */
export class Peers<P extends Judged = PeerNode> {
  /** All that go on. */
  readonly open: OpenCalls<P>;
  readonly #now: () => number;
  readonly #byMetadata = new WeakMap<Metadata, Peer<P>>();
  /** Connections that have had a call that was not refused. */
  readonly #known = new WeakSet<TLSSocket>();

  /** @param now the wall clock, milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.open = new OpenCalls(now);
  }

  /** @throws Error for a call that no interceptor has seen: there is no way into a method without it */
  of(call: { readonly metadata: Metadata }): Peer<P> {
    const peer = this.#byMetadata.get(call.metadata);
    if (peer === undefined) throw new Error('a call without a judged peer');
    return peer;
  }

  /**
   * Judges every call and answers those that are refused: the method is not entered.
   * @param forbids whether somebody who is let in may not call this method
   */
  interceptor(
    called: (ends: Ends) => TLSSocket | undefined,
    judge: JudgePeer<string | AgentError, P>,
    forbids: (peer: P, method: string) => AgentError | undefined = () => undefined,
  ): ServerInterceptor {
    return ({ path }, call) => {
      const socket = called(call.getConnectionInfo());
      const verdict = socket === undefined ? 'the connection is gone' : judge(socket);
      if (socket === undefined || typeof verdict === 'string') {
        if (socket !== undefined) this.#showOut(socket);
        return refusing(call, String(verdict), socket, this.#now());
      }
      if (verdict instanceof AgentError) {
        this.#showOut(socket);
        return answering(call, verdict);
      }
      this.#known.add(socket);
      const forbidden = forbids(verdict, path);
      if (forbidden !== undefined) return answering(call, forbidden);
      const ended = this.open.add({ peer: verdict, socket, call });
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

/** Without entering the method; what a certificate is refused for is UNAUTHENTICATED, whatever it is (F3). */
function answering(call: ServerInterceptingCallInterface, error: AgentError): ServerInterceptingCall {
  const isOfCertificate = error.code.startsWith('certificate.');
  const answer = { ...toStatus(error), ...(isOfCertificate ? { code: status.UNAUTHENTICATED } : {}) };
  return new ServerInterceptingCall(call, { start: () => call.sendStatus({ code: status.INTERNAL, details: '', ...answer }) });
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
