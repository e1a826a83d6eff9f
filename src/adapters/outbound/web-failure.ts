import { errnoOf } from '../files/errno.js';

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ETIMEDOUT: 'no answer to the connection',
  EAI_AGAIN: 'the name service does not answer',
  ENOTFOUND: 'no such name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by nobody that is trusted here',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by nobody that is trusted here',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by nobody that is trusted here',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by nobody that is trusted here',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS',
  UND_ERR_INVALID_ARG: 'the method or a header is not valid',
  UND_ERR_NOT_SUPPORTED: 'a header is not supported',
  UND_ERR_SOCKET: 'the connection ended before the answer did',
  UND_ERR_HEADERS_OVERFLOW: 'its headers are too large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the connection ended before the answer did',
};

/** What went wrong with a request, for people. From the code alone: what an error says may hold what the other side has sent. */
export function reasonOf(error: unknown): string {
  // Its code is not always set.
  if (error instanceof Error && error.name === 'HTTPParserError') return 'it does not speak HTTP';
  const code = errnoOf(error) ?? 'an unknown error';
  return reasons[code] ?? code;
}
