import { X509Certificate as NodeCertificate } from 'node:crypto';
import type { PresentedCertificate } from '../../domain/certificate/judge.js';
import { identityOfUris } from '../../domain/certificate/names.js';
import type { Validity } from '../../domain/certificate/validity.js';
import { SubjectAlternativeNameExtension, X509Certificate } from './x509.js';

/**
 * A certificate as a peer showed it, judged by the authority whose root is `root`. The identity comes from its URIs alone, read as ASN.1:
 * text forms of names can be made to look like several.
 * @param der as of `TLSSocket.getPeerX509Certificate()?.raw` @param root PEM
 * @throws Error when one of them is no certificate
 */
export function readPresented(der: Uint8Array, root: string): PresentedCertificate {
  const certificate = new NodeCertificate(der);
  const issuer = new NodeCertificate(root);
  return {
    identity: identityOfUris(urisOf(der)),
    ...readValidity(certificate),
    trusted: certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey),
  };
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
