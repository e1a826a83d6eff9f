import type { Aid, Nid, RegistrationId } from '../link/model.js';

/** Whom a certificate of ours names, as the URI in it says: `names.ts` has its forms. */
export type CertificateIdentity =
  | { readonly role: 'node'; readonly aid: Aid; readonly nid: Nid; readonly registration: RegistrationId }
  | { readonly role: 'server'; readonly name: string }
  /** `aid` is the account of the control plane that made it; it operates all nodes, whatever account they are of. */
  | { readonly role: 'admin'; readonly aid: Aid; readonly name: string; readonly grade: AdminGrade };

/** viewer: no secrets, no payloads. operator: applies, cordons, sends what only reads or converges. admin: everything. */
export type AdminGrade = 'viewer' | 'operator' | 'admin';

export interface CertificateFacts {
  readonly identity: CertificateIdentity;
  /** Lower-case hex without leading zeros. */
  readonly serial: string;
  /** Wall clock, milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
}
