import type { TLSSocket } from 'node:tls';
import { judgeCertificate, type PresentedCertificate } from '../../domain/certificate/judge.js';
import type { Revocations } from '../../domain/certificate/revocation.js';
import { formatAddressPort, ipAddress } from '../../domain/kernel/network.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import { readPresented } from './certificate-reader.js';

export interface NodePeerJudgeParts {
  /** PEM of the root of nodes. */
  readonly root: string;
  readonly revocations: Revocations;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

/**
 * Who is at the other end of a connection, for one call: the node, or a sentence that says why it is not let in. A connection's
 * certificate is read once (a millisecond), its times and its revocation are looked at for each call.
 */
export function nodePeerJudge({ root, revocations, now }: NodePeerJudgeParts): (socket: TLSSocket) => PeerNode | string {
  const read = new WeakMap<TLSSocket, PresentedCertificate>();
  return (socket) => {
    const presented = read.get(socket) ?? presentedOn(socket, root);
    if (presented === undefined) return 'no certificate was shown, or one that cannot be read';
    read.set(socket, presented);
    const verdict = judgeCertificate(presented, 'node', revocations, now());
    if (verdict.verdict !== 'good') return verdict.problem;
    // It was asked for a node.
    if (verdict.identity.role !== 'node') return 'the certificate is of no node';
    const { serial, notAfter } = presented;
    return { identity: verdict.identity, serial, notAfter, address: addressOf(socket) };
  };
}

function presentedOn(socket: TLSSocket, root: string): PresentedCertificate | undefined {
  const certificate = socket.getPeerX509Certificate();
  try {
    return certificate === undefined ? undefined : readPresented(certificate.raw, root);
  } catch {
    // OpenSSL has read it; what our reader does not take names nobody.
    return undefined;
  }
}

/** Empty when the connection is gone. */
function addressOf({ remoteAddress = '', remotePort = 0 }: TLSSocket): string {
  const address = ipAddress(remoteAddress);
  return address === undefined ? '' : formatAddressPort(address, remotePort);
}
