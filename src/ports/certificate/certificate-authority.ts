import type { CertificateIdentity } from '../../domain/certificate/model.js';
import type { CallOptions } from '../call-options.js';

/** A public key that was shown to have its private key. */
export interface ProvenKey {
  /** SHA-256 in hex of the DER SubjectPublicKeyInfo. */
  readonly fingerprint: string;
  /** DER. */
  readonly spki: Uint8Array;
}

export interface IssueRequest {
  readonly identity: CertificateIdentity;
  readonly key: ProvenKey;
  /** Lower-case hex, 128 bits. */
  readonly serial: string;
  /** Wall clock, milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** For servers: names and addresses. */
  readonly hosts?: readonly string[];
}

/** Signs with one issuer's key: there is one authority for nodes and servers (the L2 root), one for L1 servers and one for admins. */
export interface CertificateAuthority {
  /** One PEM block. */
  readonly root: string;
  /** One PEM block. @throws AgentError `certificate.failed` */
  issue(request: IssueRequest, options: CallOptions): Promise<string>;
  /**
   * The key of a PKCS#10 request whose signature is right; everything else in it is ignored. RSA 2048 to 4096, P-256, P-384, Ed25519.
   * @throws AgentError `certificate.csr_invalid`
   */
  proveKey(csr: Uint8Array, options: CallOptions): Promise<ProvenKey>;
  /** For those who send no request: RSA 2048, PKCS#1 PEM. At most 4 at a time. */
  makeKey(options: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }>;
}
