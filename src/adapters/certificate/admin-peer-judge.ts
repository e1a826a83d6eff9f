import type { TLSSocket } from 'node:tls';
import { type BadVerdict, codeOfVerdict, judgeCertificate } from '../../domain/certificate/judge.js';
import type { CertificateIdentity } from '../../domain/certificate/model.js';
import type { Revocations } from '../../domain/certificate/revocation.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { addressOf, certificatesOf } from './peer-certificates.js';

/** Somebody whose certificate was judged good for this call. */
export interface AdminPeer {
  readonly identity: Extract<CertificateIdentity, { role: 'admin' }>;
  readonly serial: string;
  /** Wall clock, milliseconds: streams end then. */
  readonly notAfter: number;
  /** `address:port` that they call from. */
  readonly address: string;
}

export interface AdminPeerJudgeParts {
  /** Of admins, PEM each; another array when they have changed. */
  readonly roots: () => readonly string[];
  readonly revocations: Revocations & {
    /** Whether it is known what is revoked. */
    readonly isLoaded: boolean;
  };
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

const ANOTHER = 'ask for another certificate, made at the server by `holdfast cert create NAME --role ROLE --out DIR`';
const remedies: Readonly<Record<BadVerdict['verdict'], string>> = {
  wrong_issuer: ANOTHER,
  wrong_role: ANOTHER,
  expired: `${ANOTHER}, unless a clock is wrong: both are named`,
  not_yet_valid: 'set the clock that is wrong: both are named',
  revoked: ANOTHER,
};

/** Who is at the other end of a connection, for one call: somebody who operates the control plane, or why they are not let in. */
export function adminPeerJudge({ roots, revocations, now }: AdminPeerJudgeParts): (socket: TLSSocket) => AdminPeer | AgentError {
  const presentedOn = certificatesOf(roots);
  return (socket) => {
    if (!revocations.isLoaded) {
      return new AgentError('store.unavailable', { problem: 'it is not known yet which certificates are revoked' });
    }
    const presented = presentedOn(socket);
    if (presented === undefined) {
      const problem = 'no certificate was shown, or one that cannot be read; this port takes those of admins';
      return new AgentError('certificate.wrong_issuer', { problem, remedy: ANOTHER });
    }
    const verdict = judgeCertificate(presented, 'admin', revocations, now());
    if (verdict.verdict !== 'good') {
      const problem = `${verdict.problem}${isOfOthers(verdict) ? '; this port takes those of admins' : ''}`;
      return new AgentError(codeOfVerdict(verdict), { problem, remedy: remedies[verdict.verdict] });
    }
    // It was asked for an admin.
    if (verdict.identity.role !== 'admin') return new AgentError('certificate.wrong_role', { remedy: ANOTHER });
    const { serial, notAfter } = presented;
    return { identity: verdict.identity, serial, notAfter, address: addressOf(socket) };
  };
}

function isOfOthers({ verdict }: BadVerdict): boolean {
  return verdict === 'wrong_issuer' || verdict === 'wrong_role';
}
