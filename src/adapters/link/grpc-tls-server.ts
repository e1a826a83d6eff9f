import type { TLSSocket } from 'node:tls';
import {
  type ConnectionInjector,
  Server,
  ServerCredentials,
  type ServerInterceptor,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { DrivingServer } from '../../ports/driving/server.js';
import { type AcceptLimits, type Ends, type ServerPair, TlsAcceptor } from './tls-acceptor.js';

/**
 * Budgets of one HTTP/2 connection (I2). grpc-js has options for the number of streams only; an agent needs a few of everything, and 16 KiB
 * of headers hold all of ours ten times. (Those of a first call, on their way before the client has seen this, are held by nghttp2 to 64 KiB.)
 */
const budgets = {
  settings: { maxConcurrentStreams: 32, maxHeaderListSize: 16 * 1024 },
  maxOutstandingPings: 10,
  maxOutstandingSettings: 10,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  streamResetBurst: 100,
  streamResetRate: 10,
};

/** Of a stop: for what was said last, such as when to come back. */
const GOODBYE_MS = 500;

export interface GrpcTlsServerParts {
  readonly listen: { readonly host: string; readonly port: number };
  /** Read at the start and at `reload`. */
  readonly pair: () => ServerPair;
  readonly limits: AcceptLimits;
  readonly maxMessageBytes: number;
  /** A connection without a call for so long is closed. */
  readonly idleMs: number;
  readonly services: readonly Service[];
  /** For every method; `called` gives the connection of a call. */
  readonly interceptor: (called: (ends: Ends) => TLSSocket | undefined) => ServerInterceptor;
}

export interface Service {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** gRPC over TLS that we end ourselves: only so can each call be judged by the certificate of its connection. */
export class GrpcTlsServer implements DrivingServer {
  readonly #parts: GrpcTlsServerParts;
  #running: { readonly grpc: Server; readonly acceptor: TlsAcceptor } | undefined;

  constructor(parts: GrpcTlsServerParts) {
    this.#parts = parts;
  }

  /** @throws AgentError `link.not_served` */
  async start(): Promise<void> {
    if (this.#running !== undefined) return;
    const { listen, pair, limits, maxMessageBytes, idleMs, services, interceptor } = this.#parts;
    let injector: ConnectionInjector | undefined;
    const onSecure = (socket: TLSSocket) => injector?.injectConnection(socket);
    const acceptor = new TlsAcceptor({ listen, pair, limits, onSecure });
    const grpc = new Server({
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc.max_connection_idle_ms': idleMs,
      'grpc.enable_channelz': 0,
      interceptors: [interceptor((ends) => acceptor.called(ends))],
    });
    setBudgets(grpc);
    for (const { definition, implementation } of services) grpc.addService(definition, implementation);
    injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    this.#running = { grpc, acceptor };
    await acceptor.start();
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    running.acceptor.stopListening();
    // Its callback comes before what was written last has gone out.
    running.grpc.tryShutdown(() => {});
    await running.acceptor.drained(GOODBYE_MS);
    running.grpc.forceShutdown();
    await running.acceptor.stop();
  }

  /** Connections from now on get the pair as it is now. */
  reload(): void {
    this.#running?.acceptor.reload();
  }

  /** 0 while it does not listen. */
  get port(): number {
    return this.#running?.acceptor.port ?? 0;
  }

  counts() {
    return this.#running?.acceptor.counts();
  }
}

/** Into the options that grpc-js passes to node:http2, which it has no names for. Its version is exact; tests see the limits on the wire. */
function setBudgets(grpc: Server): void {
  const options: unknown = Reflect.get(grpc, 'commonServerOptions');
  if (typeof options !== 'object' || options === null) throw new Error('this version of grpc-js hides its HTTP/2 options');
  Object.assign(options, budgets);
}
