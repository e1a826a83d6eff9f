import { randomBytes } from 'node:crypto';
import { X509AuthorityMaker } from '../../../src/adapters/certificate/x509-authority-maker.js';
import { X509KeyMaker } from '../../../src/adapters/certificate/x509-key-maker.js';
import type { CertificateIdentity } from '../../../src/domain/certificate/model.js';
import { SERIAL_BYTES, serialOf } from '../../../src/domain/certificate/names.js';
import type { Validity } from '../../../src/domain/certificate/validity.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import type { CertificateAuthority } from '../../../src/ports/certificate/certificate-authority.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';

export const options = { signal: new AbortController().signal };
export const maker = new X509AuthorityMaker();
export const keys = new X509KeyMaker();
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const newSerial = () => serialOf(randomBytes(SERIAL_BYTES));

export const node: CertificateIdentity = {
  role: 'node',
  aid: aid('acme'),
  nid: nid('n1'),
  registration: registrationId('r1'),
};
export const server: CertificateIdentity = { role: 'server', name: 'a' };

export async function newAuthority(commonName = 'root'): Promise<CertificateAuthority> {
  const now = Date.now();
  const request = { commonName, serial: newSerial(), notBefore: now - DAY, notAfter: now + 3_652 * DAY };
  return maker.open(await maker.makeRoot(request, options), options);
}

/** Whole seconds: certificates have no more. */
export function lasting(from: number, to: number): Validity {
  const now = Math.floor(Date.now() / 1_000) * 1_000;
  return { notBefore: now + from, notAfter: now + to };
}

export async function newPair(
  authority: CertificateAuthority,
  identity: CertificateIdentity = node,
  validity: Validity = lasting(-10 * MINUTE, 90 * DAY),
): Promise<Pair> {
  const { key, privateKey } = await maker.makeKey(options);
  const hosts = identity.role === 'server' ? ['localhost', '127.0.0.1', '::1'] : [];
  const certificate = await authority.issue({ identity, key, serial: newSerial(), hosts, ...validity }, options);
  return { certificate, privateKey, ca: authority.root };
}
