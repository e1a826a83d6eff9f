import { AgentError } from '../../domain/kernel/errors.js';
import { errnoOf } from '../files/errno.js';

/** As tls.PeerCertificate says it, and our own clock's text. */
export interface Validity {
  readonly from: string;
  readonly to: string;
  readonly now: string;
}

const untrusted: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  CERT_REVOKED: 'it is revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is self-signed and not our root',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it is not for this name',
  SELF_SIGNED_CERT_IN_CHAIN: 'its root is not ours',
  UNABLE_TO_GET_ISSUER_CERT: 'its root is not ours',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its root is not ours',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its root is not ours',
};

/** Alerts by which a server says what it has against our certificate. */
const refused: Readonly<Record<string, string>> = {
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'bad certificate',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: 'certificate expired',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: 'certificate revoked',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: 'certificate unknown',
  ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE: 'unsupported certificate',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'certificate required',
  ERR_SSL_TLSV1_ALERT_ACCESS_DENIED: 'access denied',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'unknown certificate authority',
  ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR: 'its signature is wrong',
};

const unreachable: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (connection refused)',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'the host is not reachable',
  ENETUNREACH: 'the network is not reachable',
  ETIMEDOUT: 'nothing answers there',
  ENOTFOUND: 'the name service does not know the name',
  EAI_AGAIN: 'the name service does not answer',
  ERR_SSL_WRONG_VERSION_NUMBER: 'no TLS is spoken there',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'no TLS is spoken there',
};

/** What is wrong with a certificate, for people and with the code of OpenSSL or Node. */
export function distrustText(code: string): string {
  const why = untrusted[code];
  return why === undefined ? code : `${why} (${code})`;
}

/** We do not take the server's certificate. `code` is that of OpenSSL or Node. */
export function untrustedServer(where: string, code: string, { from, to, now }: Validity): AgentError {
  const why = untrusted[code] ?? code;
  const problem = `${where}: the server's certificate is not accepted: ${why} (valid from ${from} to ${to}; the clock here says ${now})`;
  return new AgentError('certificate.untrusted', { problem, cause: code });
}

/** What a connection failed of: a name, a port, a firewall, TLS, or our certificate. */
export function connectionFailure(where: string, error: unknown): AgentError {
  const code = errnoOf(error) ?? '';
  const alert = refused[code];
  if (alert !== undefined) {
    const problem = `${where}: the server refuses our certificate: ${alert}`;
    return new AgentError('certificate.refused', { problem, cause: code }, { cause: error });
  }
  const why = unreachable[code] ?? (error instanceof Error ? error.message : String(error));
  return new AgentError('link.unreachable', { problem: `${where}: ${why}`, cause: code }, { cause: error });
}
