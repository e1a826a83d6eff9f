import type { IssuerRecord } from '../../domain/certificate/records.js';
import type { Validity } from '../../domain/certificate/validity.js';
import type { CallOptions } from '../call-options.js';
import type { CertificateAuthority, ProvenKey } from './certificate-authority.js';

export interface RootRequest extends Validity {
  /** For people. */
  readonly commonName: string;
  /** Lower-case hex, 128 bits. */
  readonly serial: string;
}

export interface CrossRequest extends Validity {
  /** Lower-case hex, 128 bits. */
  readonly serial: string;
}

export interface RootFacts extends Validity {
  readonly commonName: string;
  readonly serial: string;
  /** SHA-256 of its DER, lower-case hex. */
  readonly fingerprint: string;
}

/** Makes authorities, and the keys of those who certify themselves: us. All keys are P-256. */
export interface AuthorityMaker {
  /** A self-signed root, which may sign end certificates and the root that follows it. @throws AgentError `certificate.failed` */
  makeRoot(request: RootRequest, options: CallOptions): Promise<IssuerRecord>;
  /**
   * The certificate of `root`, signed by another one: whoever trusts that one trusts what `root` signs. At most as long as that one. PEM.
   * @param root PEM @throws AgentError `certificate.failed`
   */
  crossSign(root: string, by: IssuerRecord, request: CrossRequest, options: CallOptions): Promise<string>;
  /** @param root PEM @throws AgentError `certificate.failed` */
  rootFacts(root: string): RootFacts;
  /** @param certificate PEM @param root PEM */
  isIssuedBy(certificate: string, root: string): boolean;
  /** @throws AgentError `certificate.failed` when certificate and key cannot be read or do not belong together */
  open(issuer: IssuerRecord, options: CallOptions): Promise<CertificateAuthority>;
  /** PEM, PKCS#8. */
  makeKey(options: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }>;
}
