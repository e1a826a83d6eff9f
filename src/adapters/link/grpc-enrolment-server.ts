import { ServerInterceptingCall, type ServerUnaryCall, status } from '@grpc/grpc-js';
import type { Enrolment } from '../../ports/driving/enrolment.js';
import type { DrivingServer } from '../../ports/driving/server.js';
import type { Logger } from '../../ports/logger.js';
import {
  type NodeRegistrationRequest,
  type NodeRegistrationResponse,
  NodewardService,
} from '../generated/runos/nodeward/proto/l1sec/l1sec.js';
import { GrpcTlsServer } from './grpc-tls-server.js';
import { type AcceptLimits, type ServerPair, usualLimits } from './tls-acceptor.js';
import { refused, unary } from './unary-calls.js';

/** A request has a token, a CSR of a few KiB and the networks of a machine. */
const MAX_REQUEST_BYTES = 1024 * 1024;
/** A registration is one call; whoever may connect is anybody. */
const IDLE_MS = 30_000;
const MOST_OPEN = 2_000;

export interface GrpcEnrolmentServerParts {
  readonly listen: { readonly host: string; readonly port: number };
  /** Without roots of clients; read at the start and at `reload`. */
  readonly pair: () => ServerPair;
  readonly enrolment: Enrolment;
  readonly limits?: Partial<AcceptLimits>;
  readonly logger: Logger;
}

/** The server-authenticated channel (L1) of a control plane: registration, open to anyone who can connect. */
export class GrpcEnrolmentServer implements DrivingServer {
  readonly #parts: GrpcEnrolmentServerParts;
  readonly #server: GrpcTlsServer;

  constructor(parts: GrpcEnrolmentServerParts) {
    this.#parts = parts;
    const { listen, pair, limits, logger } = parts;
    const onFault = (error: unknown) => logger.error('a registration failed', { error });
    this.#server = new GrpcTlsServer({
      listen,
      pair,
      limits: { ...usualLimits, open: MOST_OPEN, ...limits },
      maxMessageBytes: MAX_REQUEST_BYTES,
      idleMs: IDLE_MS,
      services: [
        {
          definition: NodewardService,
          implementation: {
            register: unary(onFault, (call, signal) => this.#register(call, signal)),
            serverRegister: refused(status.UNIMPLEMENTED, 'this control plane registers nodes only').unary,
          },
        },
      ],
      interceptor: (called) => (_method, call) => {
        called(call.getConnectionInfo());
        return new ServerInterceptingCall(call);
      },
    });
  }

  start(): Promise<void> {
    return this.#server.start();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  /** Connections from now on get the pair as it is now. */
  reload(): void {
    this.#server.reload();
  }

  /** 0 while it does not listen. */
  get port(): number {
    return this.#server.port;
  }

  counts() {
    return { connections: this.#server.counts() };
  }

  async #register(
    call: ServerUnaryCall<NodeRegistrationRequest, NodeRegistrationResponse>,
    signal: AbortSignal,
  ): Promise<NodeRegistrationResponse> {
    const { machineId, aid, token, os, hostCidrs, csr } = call.request;
    const address = addressOf(call.getPeer());
    const request = { machineId, aid, token, os, hostCidrs, csr: csr.length === 0 ? undefined : csr, address };
    const { nid, privateKey, certificate, ca } = await this.#parts.enrolment.register(request, { signal });
    return { nid, privateKey, publicKey: certificate, caCert: ca };
  }
}

/** `10.0.0.1:4711`, and IPv6 without brackets: `::1:4711`. */
function addressOf(peer: string): string {
  const end = peer.lastIndexOf(':');
  const address = end < 0 ? peer : peer.slice(0, end);
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}
