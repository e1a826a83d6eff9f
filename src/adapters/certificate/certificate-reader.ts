import { X509Certificate as NodeCertificate } from 'node:crypto';
import type { PresentedCertificate } from '../../domain/certificate/judge.js';
import { identityOfUris } from '../../domain/certificate/names.js';
import type { Validity } from '../../domain/certificate/validity.js';
import { SubjectAlternativeNameExtension, X509Certificate } from './x509.js';

/**
 * A certificate as a peer showed it, judged by the authority that has these roots. The identity comes from its URIs alone, read as ASN.1:
 * text forms of names can be made to look like several.
 * @param der as of `TLSSocket.getPeerX509Certificate()?.raw` @param roots PEM, each
 * @throws Error when one of them is no certificate
 */
export function readPresented(der: Uint8Array, ...roots: readonly string[]): PresentedCertificate {
  const certificate = new NodeCertificate(der);
  return {
    identity: identityOfUris(urisOf(der)),
    ...readValidity(certificate),
    trusted: roots.some((root) => isSignedBy(certificate, new NodeCertificate(root))),
  };
}

export function isSignedBy(certificate: NodeCertificate, issuer: NodeCertificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Serial and times, of whatever certificate. */
export function readValidity(certificate: NodeCertificate): Validity & { readonly serial: string } {
  return {
    serial: certificate.serialNumber.toLowerCase().replace(/^0+(?=.)/, ''),
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
  };
}

function urisOf(der: Uint8Array): readonly string[] {
  const names = new X509Certificate(Uint8Array.from(der)).getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  return names.filter(({ type }) => type === 'url').map(({ value }) => value);
}

/** SHA-256 of its DER, lower-case hex; undefined when it is no certificate. @param root PEM, of which the first block counts */
export function rootFingerprint(root: string): string | undefined {
  try {
    return new NodeCertificate(root).fingerprint256.replaceAll(':', '').toLowerCase();
  } catch {
    return undefined;
  }
}
