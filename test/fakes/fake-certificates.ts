import { createHash } from 'node:crypto';
import type { PresentedCertificate } from '../../src/domain/certificate/judge.js';
import type { CertificateIdentity } from '../../src/domain/certificate/model.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { ProvenKey } from '../../src/ports/certificate/certificate-authority.js';
import type { Pair, StoredPair } from '../../src/ports/certificate/pair-store.js';

/** Certificates, keys and requests of the fakes: text that says what it is. A key is known by its name alone. */
export interface FakeCertificate {
  readonly issuer: string;
  readonly identity?: CertificateIdentity;
  readonly serial: string;
  readonly fingerprint: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly hosts?: readonly string[];
}

const HEAD = 'FAKE CERTIFICATE ';

export const formatFakeCertificate = (certificate: FakeCertificate) => `${HEAD}${JSON.stringify(certificate)}\n`;

/** @throws Error when it is none */
export function parseFakeCertificate(text: string): FakeCertificate {
  if (!text.startsWith(HEAD)) throw new Error('no fake certificate');
  return JSON.parse(text.slice(HEAD.length)) as FakeCertificate;
}

export const fakeKey = (name: string) => `FAKE KEY ${name}\n`;
export const fakeCsr = (name: string) => Uint8Array.from(Buffer.from(`FAKE REQUEST ${name}`));

export function provenOf(name: string): ProvenKey {
  return { fingerprint: createHash('sha256').update(name).digest('hex'), spki: Uint8Array.from(Buffer.from(name)) };
}

/** The certificate as the server of `root` sees it. */
export function presentFake(text: string, root: string): PresentedCertificate {
  const { issuer, identity, serial, notBefore, notAfter } = parseFakeCertificate(text);
  return { identity, serial, notBefore, notAfter, trusted: parseFakeCertificate(root).serial === issuer };
}

/** @throws AgentError `certificate.unusable` */
export function checkedFakePair(pair: Pair): StoredPair {
  try {
    const { serial, notBefore, notAfter, fingerprint } = parseFakeCertificate(pair.certificate);
    parseFakeCertificate(pair.ca);
    const name = /^FAKE KEY (.+)\n$/.exec(pair.privateKey)?.[1];
    if (name !== undefined && provenOf(name).fingerprint === fingerprint) return { ...pair, serial, notBefore, notAfter };
  } catch {
    // As below.
  }
  throw new AgentError('certificate.unusable', { problem: 'certificate and private key do not belong together' });
}
