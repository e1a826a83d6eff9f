import type { CertificateFacts } from './model.js';

/** By what a certificate is refused: all of a node's, all of a registration's, or one. */
export const revocationTargets = ['node', 'registration', 'serial'] as const;
export type RevocationTarget = (typeof revocationTargets)[number];

export interface Revocation {
  readonly of: RevocationTarget;
  readonly id: string;
  /** Wall clock, milliseconds: before it the certificate is good. */
  readonly from: number;
  /** `retired`: a newer one is in use, and what was opened before lives on. `revoked`: what is open ends as well. */
  readonly kind: 'retired' | 'revoked';
  /** A sentence for people. */
  readonly reason: string;
  /** Wall clock, milliseconds: nothing that it refuses is valid any longer, so that it may be forgotten. */
  readonly until: number;
}

/** Of two that name the same: refuses whatever either refuses. `one` itself when it does. */
export function stricter(one: Revocation, other: Revocation): Revocation {
  const [from, until] = [Math.min(one.from, other.from), Math.max(one.until, other.until)];
  const base = other.kind === 'revoked' && one.kind === 'retired' ? other : one;
  return base === one && from === one.from && until === one.until ? one : { ...base, from, until };
}

/** The identity as far as revocation goes. */
export type RevocableCertificate = Pick<CertificateFacts, 'identity' | 'serial'>;

/** Whether what is known as `revocation` names is this one. */
export function concerns({ of, id }: Revocation, { identity, serial }: RevocableCertificate): boolean {
  switch (of) {
    case 'serial':
      return id === serial;
    case 'registration':
      return identity.role === 'node' && id === identity.registration;
    case 'node':
      return identity.role === 'node' && id === identity.nid;
  }
}

/** Finds what refuses a certificate. */
export interface Revocations {
  find(of: RevocationTarget, id: string): Revocation | undefined;
}

/** What refuses the certificate at `now`; the widest one if there are several. */
export function revocationOf(
  { identity, serial }: RevocableCertificate,
  revocations: Revocations,
  now: number,
): Revocation | undefined {
  const candidates = [
    identity.role === 'node' ? revocations.find('node', identity.nid) : undefined,
    identity.role === 'node' ? revocations.find('registration', identity.registration) : undefined,
    revocations.find('serial', serial),
  ];
  return candidates.find((each) => each !== undefined && each.from <= now);
}
