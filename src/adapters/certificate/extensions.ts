import { isIP } from 'node:net';
import type { CertificateIdentity } from '../../domain/certificate/model.js';
import { identityUri } from '../../domain/certificate/names.js';
import {
  type AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  type SubjectKeyIdentifierExtension,
} from './x509.js';

export interface LeafRequest {
  readonly identity: CertificateIdentity;
  readonly hosts: readonly string[];
  /** RSA keys may also be used for key exchange, which TLS 1.2 without forward secrecy asks for. */
  readonly isRsa: boolean;
  readonly subjectKey: SubjectKeyIdentifierExtension;
  readonly issuerKey: AuthorityKeyIdentifierExtension;
}

/** Of an end certificate: what it may be used for, and whom it names. */
export function leafExtensions({ identity, hosts, isRsa, subjectKey, issuerKey }: LeafRequest): Extension[] {
  const usage = identity.role === 'server' ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth;
  const flags = KeyUsageFlags.digitalSignature | (isRsa ? KeyUsageFlags.keyEncipherment : 0);
  return [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(flags, true),
    new ExtendedKeyUsageExtension([usage]),
    new SubjectAlternativeNameExtension([{ type: 'url', value: identityUri(identity) }, ...hosts.map(hostName)]),
    subjectKey,
    issuerKey,
  ];
}

/** Of a root: below it is at most the root that follows it, which certifies end certificates. */
export function rootExtensions(subjectKey: SubjectKeyIdentifierExtension): Extension[] {
  return [new BasicConstraintsExtension(true, 1, true), ...authorityUse(), subjectKey];
}

/** Of a root as another one certifies it. */
export function crossExtensions(
  subjectKey: SubjectKeyIdentifierExtension,
  issuerKey: AuthorityKeyIdentifierExtension,
): Extension[] {
  return [new BasicConstraintsExtension(true, 0, true), ...authorityUse(), subjectKey, issuerKey];
}

function authorityUse(): Extension[] {
  return [new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true)];
}

function hostName(host: string): JsonGeneralName {
  return isIP(host) === 0 ? { type: 'dns', value: host } : { type: 'ip', value: host };
}
