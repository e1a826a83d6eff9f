import type { AdminGrade } from '../../domain/certificate/model.js';
import type { Aid } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';

export interface AdminCertificateCall {
  readonly name: string;
  readonly grade: AdminGrade;
  /** Milliseconds; a minute to a year. */
  readonly ttlMs: number;
  /** DER of a PKCS#10 request, of which only the key counts: it was made where it is used. */
  readonly csr: Uint8Array;
  /** Who asks for it, for those who look later. */
  readonly by: string;
}

/** What is kept of the certificate of somebody who operates the control plane. */
export interface AdminCertificateFacts {
  /** Hex. */
  readonly serial: string;
  readonly aid: Aid;
  readonly name: string;
  readonly grade: AdminGrade;
  /** Wall clock, milliseconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly by: string;
  /** Why it is refused; undefined while it is not. */
  readonly revoked: string | undefined;
}

/** Certificates of those who operate the control plane from elsewhere. They are ended by `Registrations.revokeCertificate`. */
export interface AdminCertificates {
  /**
   * Every replica takes it from when it resolves. PEM, one block each.
   * @throws AgentError `certificate.admin_invalid` for a name or a lifetime that is none, `certificate.csr_invalid`, `store.*`
   */
  create(
    call: AdminCertificateCall,
    options: CallOptions,
  ): Promise<{ readonly certificate: string; readonly ca: string; readonly facts: AdminCertificateFacts }>;
  /** Until a day after their end, sorted by name, then the time of making. @throws AgentError `store.unavailable` */
  list(options: CallOptions): Promise<readonly AdminCertificateFacts[]>;
}
