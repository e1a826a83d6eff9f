import type { Aid, Nid, RegistrationId } from '../link/model.js';

/** Whom a certificate of ours names: a node by the URI `holdfast:node:<aid>:<nid>:<registration>`, others by `holdfast:<role>:<name>`. */
export type CertificateIdentity =
  | { readonly role: 'node'; readonly aid: Aid; readonly nid: Nid; readonly registration: RegistrationId }
  | { readonly role: 'server'; readonly name: string }
  | { readonly role: 'admin'; readonly name: string; readonly grade: AdminGrade };

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
