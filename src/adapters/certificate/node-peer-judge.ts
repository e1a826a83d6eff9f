import type { TLSSocket } from 'node:tls';
import { judgeCertificate } from '../../domain/certificate/judge.js';
import type { Revocations } from '../../domain/certificate/revocation.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import { addressOf, certificatesOf } from './peer-certificates.js';

export interface NodePeerJudgeParts {
  /** Of nodes, PEM each; another array when they have changed. */
  readonly roots: () => readonly string[];
  readonly revocations: Revocations;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

/**
 * Who is at the other end of a connection, for one call: the node, or a sentence that says why it is not let in. A connection's
 * certificate is read once (1.2 ms of CPU), its times and its revocation are looked at for each call.
 */
export function nodePeerJudge({ roots, revocations, now }: NodePeerJudgeParts): (socket: TLSSocket) => PeerNode | string {
  const presentedOn = certificatesOf(roots);
  return (socket) => {
    const presented = presentedOn(socket);
    if (presented === undefined) return 'no certificate was shown, or one that cannot be read';
    const verdict = judgeCertificate(presented, 'node', revocations, now());
    if (verdict.verdict !== 'good') return verdict.problem;
    // It was asked for a node.
    if (verdict.identity.role !== 'node') return 'the certificate is of no node';
    const { serial, notAfter } = presented;
    return { identity: verdict.identity, serial, notAfter, address: addressOf(socket) };
  };
}
