import type { Aid, Nid, RegistrationId } from '../link/model.js';
import type { AdminGrade } from './model.js';
import type { Revocation, RevocationTarget } from './revocation.js';
import type { TokenRecord } from './token.js';

/**
 * What enrolment keeps in the control plane's store, as JSON:
 *
 * | key | value |
 * |---|---|
 * | `enrol/node/<nid>` | NodeRecord |
 * | `enrol/certificate/<serial>` | CertificateRecord |
 * | `enrol/admin/<serial>` | AdminRecord |
 * | `enrol/admin-first` | serial of the first of them |
 * | `enrol/token/<id>` | TokenRecord |
 * | `enrol/revoked/<node, registration or serial>/<id>` | Revocation |
 * | `ca/<l1, l2 or admin>` | sealed IssuerRecord |
 * | `seal/check` | sealed text that only the right key opens |
 */
export const nodePrefix = 'enrol/node/';
export const certificatePrefix = 'enrol/certificate/';
export const adminPrefix = 'enrol/admin/';
export const FIRST_ADMIN_KEY = 'enrol/admin-first';
export const tokenPrefix = 'enrol/token/';
export const revocationPrefix = 'enrol/revoked/';
export const SEAL_CHECK_KEY = 'seal/check';

export const nodeKey = (nid: Nid) => `${nodePrefix}${nid}`;
export const certificateKey = (serial: string) => `${certificatePrefix}${serial}`;
export const adminKey = (serial: string) => `${adminPrefix}${serial}`;
export const tokenKey = (id: string) => `${tokenPrefix}${id}`;
export const revocationKey = (of: RevocationTarget, id: string) => `${revocationPrefix}${of}/${id}`;
export const issuerPrefix = 'ca/';
export const issuerKey = (issuer: Issuer) => `${issuerPrefix}${issuer}`;

/** `l1`: certifies the registration port. `l2`: nodes, and the servers that they call. `admin`: those who operate the control plane. */
export const issuers = ['l1', 'l2', 'admin'] as const;
export type Issuer = (typeof issuers)[number];

/** A certificate that a node holds. */
export interface HeldCertificate {
  readonly serial: string;
  /** SHA-256 in hex of its public key. */
  readonly fingerprint: string;
  /** Wall clock, milliseconds. */
  readonly issued: number;
  readonly notAfter: number;
  /** When the node first called with it; undefined until then. */
  readonly firstUsed?: number | undefined;
}

/** A node, from its registration on. Another registration of it is another value under the same key. */
export interface NodeRecord {
  readonly nid: Nid;
  readonly aid: Aid;
  readonly registration: RegistrationId;
  readonly machineId: string;
  /** `debian-12`. */
  readonly os: string;
  /** The networks of its host, for choosing others. */
  readonly hostCidrs: readonly string[];
  /** IP address that it registered from. */
  readonly address: string;
  /** Wall clock, milliseconds. */
  readonly registered: number;
  /** The one that is in use, or the first one. */
  readonly current: HeldCertificate;
  /** Issued to follow it, and never used yet. */
  readonly pending?: HeldCertificate | undefined;
  /** When it was given certificates in the last day. */
  readonly renewals: readonly number[];
}

export interface CertificateRecord {
  readonly serial: string;
  readonly nid: Nid;
  readonly registration: RegistrationId;
  /** Wall clock, milliseconds. */
  readonly notAfter: number;
  /** PEM. */
  readonly certificate: string;
}

/** The certificate of somebody who operates the control plane. */
export interface AdminRecord {
  readonly serial: string;
  readonly aid: Aid;
  readonly name: string;
  readonly grade: AdminGrade;
  /** Wall clock, milliseconds. */
  readonly issued: number;
  readonly notAfter: number;
  /** Who asked for it, as instructions name their senders. */
  readonly by: string;
}

/** One of our three authorities. */
export interface IssuerRecord {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS#8. */
  readonly privateKey: string;
  /** The root before it, while that still counts. */
  readonly former?: FormerIssuer | undefined;
}

/** A root that certifies no more: its key is gone. */
export interface FormerIssuer {
  /** PEM. */
  readonly certificate: string;
  /** The root that has followed it, certified by this one, for those who know this one alone. PEM. */
  readonly cross: string;
  /** Wall clock, milliseconds. */
  readonly replacedAt: number;
}

export type EnrolmentRecord = NodeRecord | CertificateRecord | AdminRecord | TokenRecord | Revocation | IssuerRecord;

export function encodeRecord(record: EnrolmentRecord): string {
  return JSON.stringify(record);
}
