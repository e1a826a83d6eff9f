import type { ErrorCode } from '../kernel/errors.js';
import { formatInstant, roughly } from '../kernel/instant.js';
import type { CertificateFacts, CertificateIdentity } from './model.js';
import { describeIdentity } from './names.js';
import { type Revocations, revocationOf } from './revocation.js';

/** A certificate as somebody showed it. */
export interface PresentedCertificate extends Omit<CertificateFacts, 'identity'> {
  /** Undefined: it names nobody of ours. */
  readonly identity: CertificateIdentity | undefined;
  /** Whether the issuer that this port asks for has signed it. */
  readonly trusted: boolean;
}

/** `problem` is a sentence for whoever showed it: what is wrong, from when until when it is valid, and what our clock says. */
export type CertificateVerdict =
  | { readonly verdict: 'good'; readonly identity: CertificateIdentity }
  | {
      readonly verdict: 'wrong_issuer' | 'wrong_role' | 'expired' | 'not_yet_valid' | 'revoked';
      readonly problem: string;
    };

export type BadVerdict = Exclude<CertificateVerdict, { verdict: 'good' }>;

/**
 * Whether who shows the certificate may call what is for `role`. The signature comes first: what an unknown issuer wrote into it proves
 * nothing.
 * @param now wall clock, milliseconds
 */
export function judgeCertificate(
  certificate: PresentedCertificate,
  role: CertificateIdentity['role'],
  revocations: Revocations,
  now: number,
): CertificateVerdict {
  const { identity, serial, notBefore, notAfter, trusted } = certificate;
  const refuse = (verdict: BadVerdict['verdict'], what: string): BadVerdict => {
    const name = identity === undefined ? `certificate ${serial}` : `certificate ${serial} of ${describeIdentity(identity)}`;
    const times = `it is valid from ${formatInstant(notBefore)} to ${formatInstant(notAfter)}`;
    return { verdict, problem: `${name} ${what}; ${times}, and the server's clock says ${formatInstant(now)}` };
  };
  if (!trusted) return refuse('wrong_issuer', 'was not issued by the authority that is asked for here');
  if (identity === undefined) return refuse('wrong_role', `names nobody; ${role} is asked for here`);
  if (identity.role !== role) return refuse('wrong_role', `has the role ${identity.role}; ${role} is asked for here`);
  if (now < notBefore) return refuse('not_yet_valid', `is not valid yet, for another ${roughly(notBefore - now)}`);
  if (now > notAfter) return refuse('expired', `expired ${roughly(now - notAfter)} ago`);
  const revocation = revocationOf({ identity, serial }, revocations, now);
  if (revocation !== undefined) return refuse('revoked', `was revoked: ${revocation.reason}`);
  return { verdict: 'good', identity };
}

/** `certificate.expired` and so on. */
export function codeOfVerdict({ verdict }: BadVerdict): ErrorCode {
  return `certificate.${verdict}`;
}
