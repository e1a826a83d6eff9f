import type { Socket } from 'node:net';
import { isIP } from 'node:net';
import { connect, type SecureContext, type TLSSocket } from 'node:tls';
import { CallCredentials, ChannelCredentials } from '@grpc/grpc-js';
import type { AgentError } from '../../domain/kernel/errors.js';
import { connectionFailure, untrustedServer } from './tls-failure.js';

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;
type SecureConnectResult = Awaited<ReturnType<SecureConnector['connect']>>;

/** What the transport of a channel shows of itself. */
export interface Transport {
  readonly raw: Socket;
  readonly tls: TLSSocket;
}

export interface MutualCredentialsParts {
  /** Its name is asked for (SNI) and must be in the certificate. */
  readonly host: string;
  /** For messages. */
  readonly where: string;
  readonly secureContext: SecureContext;
  readonly onConnected: (transport: Transport) => void;
  /** Also after the handshake: TLS 1.3 tells only then what a server has against our certificate. */
  readonly onFailed: (error: AgentError) => void;
}

/**
 * TLS of a channel made by ourselves: grpc-js keeps to itself why a certificate was refused, and the socket whose bytes show that the
 * path lives. Its version is exact, so that what begins with an underscore stays as it is.
 */
export class MutualCredentials extends ChannelCredentials {
  readonly #parts: MutualCredentialsParts;

  constructor(parts: MutualCredentialsParts) {
    super();
    this.#parts = parts;
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(_target: unknown, _options: unknown, callCredentials?: CallCredentials): SecureConnector {
    const credentials = callCredentials ?? CallCredentials.createEmpty();
    return {
      connect: (socket) => this.#connect(socket),
      waitForReady: async () => {},
      getCallCredentials: () => credentials,
      destroy: () => {},
    };
  }

  #connect(raw: Socket): Promise<SecureConnectResult> {
    const { host, where, secureContext, onConnected, onFailed } = this.#parts;
    const { promise, resolve, reject } = Promise.withResolvers<SecureConnectResult>();
    const fail = (error: AgentError) => {
      onFailed(error);
      reject(error);
    };
    // Judged below, where the certificate can still be read.
    const options = { socket: raw, secureContext, host, ALPNProtocols: ['h2'], rejectUnauthorized: false };
    const tls = connect(isIP(host) === 0 ? { ...options, servername: host } : options, () => {
      if (!tls.authorized) {
        fail(untrusted(where, tls));
        tls.destroy();
        return;
      }
      onConnected({ raw, tls });
      resolve({ socket: tls, secure: true });
    });
    tls.on('error', (error) => fail(connectionFailure(where, error)));
    tls.once('close', () => fail(connectionFailure(where, new Error('the connection was closed during the TLS handshake'))));
    return promise;
  }
}

function untrusted(where: string, tls: TLSSocket): AgentError {
  const code = String(tls.authorizationError);
  const { valid_from: from, valid_to: to } = tls.getPeerCertificate();
  return untrustedServer(where, code, { from, to, now: new Date().toUTCString() });
}
