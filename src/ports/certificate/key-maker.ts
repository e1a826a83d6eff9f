import type { CallOptions } from '../call-options.js';

/** A key that was made on the node, and the request to certify it. */
export interface KeyRequest {
  /** PEM, PKCS#8. */
  readonly privateKey: string;
  /** DER of a PKCS#10 request. */
  readonly csr: Uint8Array;
}

export interface KeyMaker {
  /** A new key each time. @throws AgentError `certificate.failed` */
  makeRequest(options: CallOptions): Promise<KeyRequest>;
}
