import { createSecureContext } from 'node:tls';
import { type ChannelCredentials, type ChannelOptions, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { AgentError } from '../../domain/kernel/errors.js';
import { formatHostPort, type HostPort } from '../../domain/kernel/network.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import { clockAnswer, explain } from '../certificate/unary-call.js';
import { fromServiceError } from '../grpc/grpc-errors.js';
import { MutualCredentials } from '../link/mutual-credentials.js';
import { socketName } from './unix-socket.js';

/** A control plane elsewhere, and what is shown to it. The server is judged by the pair's root, and must have the host's name. */
export interface RemoteTarget extends HostPort {
  readonly pair: Pair;
}

/** How a client comes to a daemon, and what is said when it does not. */
export interface AdminWay {
  /** As grpc-js takes it. */
  readonly address: string;
  readonly credentials: ChannelCredentials;
  readonly options: ChannelOptions;
  /** What a call that failed means. Rejects on abort only. */
  failure(error: ServiceError, options: CallOptions): Promise<AgentError>;
  release(): void;
}

/** Whoever follows changes notices a server that has gone without a word, and no firewall on the way forgets the connection. */
const PINGS = { 'grpc.keepalive_time_ms': 20_000, 'grpc.keepalive_timeout_ms': 10_000 };

/** @throws AgentError `admin.unreachable` when the path is too long for the kernel and its folder is not there */
export function localWay(socket: string): AdminWay {
  const { name, release } = reachable(socket);
  return {
    address: `unix:${name}`,
    credentials: credentials.createInsecure(),
    options: { 'grpc.default_authority': 'localhost' },
    failure: async (error) => fromServiceError(error, socket),
    release,
  };
}

/** @throws AgentError `certificate.unusable` */
export function remoteWay({ host, port, pair }: RemoteTarget): AdminWay {
  const where = formatHostPort({ host, port });
  const secureContext = contextOf(pair);
  const nothing = () => {};
  return {
    address: host.includes(':') ? `ipv6:${where}` : `dns:${where}`,
    credentials: new MutualCredentials({ host, where, secureContext, onConnected: nothing, onFailed: nothing }),
    options: { ...PINGS, 'grpc.service_config_disable_resolution': 1 },
    failure: (error, options) => remoteFailure(error, { host, port, pair }, options),
    release: nothing,
  };
}

/** Ways end at a name, a port, a certificate or a clock: which of them is found out by going it again. */
async function remoteFailure(error: ServiceError, { host, port, pair }: RemoteTarget, options: CallOptions): Promise<AgentError> {
  const said = fromServiceError(error, formatHostPort({ host, port }));
  switch (error.code) {
    // What a server that was reached has said, with its own code.
    case status.UNAVAILABLE:
    case status.UNAUTHENTICATED:
      if (said.code.startsWith('certificate.')) return clockAnswer(said, error, Date.now());
      if (said.code !== 'admin.unreachable' && said.code !== 'admin.failed') return said;
      return explain(error, 'admin', { host, port, ca: pair.ca, pair }, Date.now(), options);
    default:
      return said;
  }
}

function contextOf({ ca, certificate, privateKey }: Pair) {
  try {
    return createSecureContext({ ca, cert: certificate, key: privateKey, minVersion: 'TLSv1.2' });
  } catch (cause) {
    // Not its text: a parser may quote the key that it could not read.
    throw new AgentError('certificate.unusable', { problem: 'the certificate of the admin cannot be used' }, { cause });
  }
}

function reachable(socket: string): ReturnType<typeof socketName> {
  try {
    return socketName(socket);
  } catch (error) {
    throw new AgentError('admin.unreachable', { problem: `no daemon answers at ${socket}` }, { cause: error });
  }
}
