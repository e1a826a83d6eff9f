import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { Reach } from '../../domain/certificate/registration.js';
import type { Validity } from '../../domain/certificate/validity.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import { errnoOf } from '../files/errno.js';
import { distrustText } from '../link/tls-failure.js';

export interface ReachTarget {
  readonly host: string;
  readonly port: number;
  /** PEM of the root that the server is judged by. */
  readonly ca: string;
  /** What we show, on the mutual channel. */
  readonly pair?: Pair | undefined;
}

export interface ReachFinding {
  readonly reach: Reach;
  /** Of the certificate that the server showed, when it is not good. */
  readonly serverCertificate?: Validity | undefined;
}

/** As long as a firewall that drops packets is to be told from a slow line. */
const STEP_MS = 5_000;

/**
 * Goes the way of a failed call again, step by step, and says where it ends: the name, the port, the server's certificate, ours. It sends
 * no request. Rejects on abort only.
 */
export async function findReach(target: ReachTarget, { signal }: CallOptions): Promise<ReachFinding> {
  signal.throwIfAborted();
  if (isIP(target.host) === 0) {
    try {
      await lookup(target.host);
    } catch (error) {
      signal.throwIfAborted();
      return { reach: { stage: 'name', detail: errnoOf(error) ?? String(error) } };
    }
  }
  const finding = await handshake(target, signal);
  signal.throwIfAborted();
  return finding;
}

function handshake({ host, port, ca, pair }: ReachTarget, signal: AbortSignal): Promise<ReachFinding> {
  return new Promise((resolve) => {
    let connected = false;
    let secured = false;
    const socket = connect({
      host,
      port,
      ca,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.privateKey }),
      ALPNProtocols: ['h2'],
      // It is judged by us, to see its times.
      rejectUnauthorized: false,
    });
    const end = (finding: ReachFinding) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(finding);
    };
    const onAbort = () => end({ reach: { stage: 'through' } });
    signal.addEventListener('abort', onAbort, { once: true });
    socket.setTimeout(STEP_MS, () =>
      end({ reach: secured ? { stage: 'through' } : { stage: 'silent', detail: silence(connected) } }),
    );
    socket.on('connect', () => {
      connected = true;
    });
    socket.on('error', (error) => end({ reach: failure(error, connected, secured) }));
    socket.on('close', () => end({ reach: closed(connected, secured, pair) }));
    socket.on('secureConnect', () => {
      secured = true;
      if (!socket.authorized) end(distrust(socket));
      // With TLS 1.3 a server says only after the handshake what it thinks of our certificate; the first thing that a good one sends is its settings.
      else if (pair === undefined) end({ reach: { stage: 'through' } });
      else socket.on('data', () => end({ reach: { stage: 'through' } }));
    });
  });
}

function silence(connected: boolean): string {
  return connected
    ? `the port took the connection, but said nothing within ${STEP_MS / 1_000} s`
    : `no answer within ${STEP_MS / 1_000} s`;
}

function failure(error: Error, connected: boolean, secured: boolean): Reach {
  const code = errnoOf(error) ?? error.message;
  if (secured) return { stage: 'refused', detail: code };
  if (connected) return { stage: 'tls', detail: code };
  return code === 'ECONNREFUSED' ? { stage: 'closed', detail: code } : { stage: 'silent', detail: code };
}

function closed(connected: boolean, secured: boolean, pair: Pair | undefined): Reach {
  if (secured && pair !== undefined) return { stage: 'refused', detail: 'the connection was closed' };
  return connected
    ? { stage: 'tls', detail: 'the connection was closed' }
    : { stage: 'silent', detail: 'the connection was closed' };
}

function distrust(socket: TLSSocket): ReachFinding {
  const certificate = socket.getPeerX509Certificate();
  const detail = distrustText(String(socket.authorizationError));
  if (certificate === undefined) return { reach: { stage: 'tls', detail } };
  return {
    reach: { stage: 'tls', detail },
    serverCertificate: { notBefore: Date.parse(certificate.validFrom), notAfter: Date.parse(certificate.validTo) },
  };
}
