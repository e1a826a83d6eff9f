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

/** Makes authorities, and the keys of those who certify themselves: us. All keys are P-256. */
export interface AuthorityMaker {
  /** A self-signed root that may sign end certificates only. @throws AgentError `certificate.failed` */
  makeRoot(request: RootRequest, options: CallOptions): Promise<IssuerRecord>;
  /** @throws AgentError `certificate.failed` when certificate and key cannot be read or do not belong together */
  open(issuer: IssuerRecord, options: CallOptions): Promise<CertificateAuthority>;
  /** PEM, PKCS#8. */
  makeKey(options: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }>;
}
