import { beforeAll, describe, expect, test } from 'vitest';
import { judgeCertificate, type PresentedCertificate } from '../../src/domain/certificate/judge.js';
import type { CertificateIdentity } from '../../src/domain/certificate/model.js';
import type { IssuerRecord } from '../../src/domain/certificate/records.js';
import { aid, nid, registrationId } from '../../src/domain/link/model.js';
import type { AuthorityMaker } from '../../src/ports/certificate/authority-maker.js';
import type { CertificateAuthority } from '../../src/ports/certificate/certificate-authority.js';
import type { KeyMaker } from '../../src/ports/certificate/key-maker.js';
import type { Pair } from '../../src/ports/certificate/pair-store.js';

const options = { signal: new AbortController().signal };
const aborted = { signal: AbortSignal.abort() };
const NOW = Date.UTC(2026, 0, 31, 12);
const DAY = 24 * 60 * 60_000;
const times = { notBefore: NOW - 600_000, notAfter: NOW + 90 * DAY };
const node: CertificateIdentity = { role: 'node', aid: aid('acme'), nid: nid('n1'), registration: registrationId('r1') };
const serial = '40000000000000000000000000000001';

export interface AuthorityKit {
  readonly maker: AuthorityMaker;
  readonly keys: KeyMaker;
  /** The certificate as a server with this root sees it. */
  readonly present: (certificate: string, root: string) => PresentedCertificate;
  /** @throws when certificate and key do not belong together */
  readonly check: (pair: Pair) => unknown;
}

/** Every AuthorityMaker must pass, with its authorities and the KeyMaker of the same technology. */
export function certificateAuthorityContract(name: string, { maker, keys, present, check }: AuthorityKit): void {
  describe(`CertificateAuthority: ${name}`, () => {
    const rootOf = (commonName: string, number: string): Promise<IssuerRecord> =>
      maker.makeRoot({ commonName, serial: number, notBefore: NOW - DAY, notAfter: NOW + 3_652 * DAY }, options);
    let issuer: IssuerRecord;
    let authority: CertificateAuthority;

    beforeAll(async () => {
      issuer = await rootOf('root', '40000000000000000000000000000002');
      authority = await maker.open(issuer, options);
    });

    test('certifies the key of a request, for whom and for when it is told', async () => {
      const { csr, privateKey } = await keys.makeRequest(options);
      const key = await authority.proveKey(csr, options);
      const certificate = await authority.issue({ identity: node, key, serial, ...times }, options);
      expect(present(certificate, authority.root)).toEqual({ identity: node, serial, ...times, trusted: true });
      check({ certificate, privateKey, ca: authority.root });
    });

    test('makes keys for those who send no request', async () => {
      const { key, privateKey } = await authority.makeKey(options);
      const certificate = await authority.issue({ identity: node, key, serial, ...times }, options);
      check({ certificate, privateKey, ca: authority.root });
    });

    test.each<CertificateIdentity>([
      { role: 'server', name: 'a' },
      { role: 'admin', aid: aid('acme'), name: 'alice', grade: 'viewer' },
    ])('certifies $role s', async (identity) => {
      const { key, privateKey } = await maker.makeKey(options);
      const hosts = identity.role === 'server' ? ['a.example', '192.0.2.1', '::1'] : [];
      const certificate = await authority.issue({ identity, key, serial, hosts, ...times }, options);
      expect(present(certificate, authority.root)).toMatchObject({ identity, trusted: true });
      check({ certificate, privateKey, ca: authority.root });
    });

    test('the same request has the same fingerprint, another one another', async () => {
      const [first, second] = [await keys.makeRequest(options), await keys.makeRequest(options)];
      const fingerprint = async (csr: Uint8Array) => (await authority.proveKey(csr, options)).fingerprint;
      expect(await fingerprint(first.csr)).toBe(await fingerprint(first.csr));
      expect(await fingerprint(first.csr)).not.toBe(await fingerprint(second.csr));
      expect(await fingerprint(first.csr)).toMatch(/^[0-9a-f]{64}$/);
    });

    test.each([
      ['nothing', new Uint8Array()],
      ['noise', Uint8Array.from({ length: 300 }, (_, i) => (i * 7) % 256)],
      ['far too much', new Uint8Array(1_000_000)],
    ])('refuses %s as a request', async (_, csr) => {
      await expect(authority.proveKey(csr, options)).rejects.toMatchObject({ code: 'certificate.csr_invalid' });
    });

    test('F1: what one authority has signed is not trusted by another', async () => {
      const other = await rootOf('root', '40000000000000000000000000000003');
      const { key } = await maker.makeKey(options);
      const certificate = await authority.issue({ identity: node, key, serial, ...times }, options);
      const shown = present(certificate, other.certificate);
      expect(shown.trusted).toBe(false);
      expect(judgeCertificate(shown, 'node', { find: () => undefined }, NOW)).toMatchObject({ verdict: 'wrong_issuer' });
    });

    test('an authority is opened only with its own key', async () => {
      const other = await rootOf('other', '40000000000000000000000000000004');
      const mixed = { certificate: issuer.certificate, privateKey: other.privateKey };
      await expect(maker.open(mixed, options)).rejects.toMatchObject({ code: 'certificate.failed' });
      await expect(maker.open({ certificate: '', privateKey: '' }, options)).rejects.toMatchObject({
        code: 'certificate.failed',
      });
    });

    test('an opened one goes on where it was', async () => {
      const again = await maker.open(issuer, options);
      const { key } = await maker.makeKey(options);
      const certificate = await again.issue({ identity: node, key, serial, ...times }, options);
      expect(present(certificate, authority.root).trusted).toBe(true);
    });

    test('aborted calls reject', async () => {
      const { csr } = await keys.makeRequest(options);
      const { key } = await maker.makeKey(options);
      await expect(authority.issue({ identity: node, key, serial, ...times }, aborted)).rejects.toThrow();
      await expect(authority.proveKey(csr, aborted)).rejects.toThrow();
      await expect(authority.makeKey(aborted)).rejects.toThrow();
      await expect(maker.open(issuer, aborted)).rejects.toThrow();
      await expect(maker.makeKey(aborted)).rejects.toThrow();
      await expect(keys.makeRequest(aborted)).rejects.toThrow();
    });
  });
}
