import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readPresented, rootFingerprint } from '../../../src/adapters/certificate/certificate-reader.js';
import { RecentCertificates } from '../../../src/adapters/certificate/peer-certificates.js';
import { X509AuthorityMaker } from '../../../src/adapters/certificate/x509-authority-maker.js';
import { IssuerAuthority } from '../../../src/app/certificate/issuer-authority.js';
import { OwnCertificates } from '../../../src/app/certificate/own-certificates.js';
import type { IssuerRecord } from '../../../src/domain/certificate/records.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';

const options = { signal: new AbortController().signal };
const maker = new X509AuthorityMaker();
const DAY = 24 * 60 * 60_000;
const now = Date.now();
const times = { notBefore: now - DAY, notAfter: now + 3_650 * DAY };
let serials = 0;
const serial = () => `4000000000000000000000000000${String(++serials).padStart(4, '0')}`;
const rootOf = (commonName: string) => maker.makeRoot({ commonName, serial: serial(), ...times }, options);

/** A root that has followed another, as a server has it. */
async function succession() {
  const old = await rootOf('root one');
  const made = await rootOf('root two');
  const cross = await maker.crossSign(made.certificate, old, { serial: serial(), ...times }, options);
  const record: IssuerRecord = { ...made, former: { certificate: old.certificate, cross, replacedAt: now } };
  const authority = new IssuerAuthority(record, await maker.open(record, options));
  const clock = new FakeClock(now);
  const own = new OwnCertificates({
    ...{ maker, clock, authorities: { l1: authority, l2: authority, admin: authority } },
    randomBytes: (count) => new Uint8Array(count).fill(++serials),
  });
  return { old, made, authority, pair: await own.server('l2', 'a', ['localhost'], options) };
}

/** What a client that trusts `ca` alone makes of the server: empty, or why it does not talk to it. */
async function judgedBy(ca: string, pair: { readonly certificate: string; readonly privateKey: string }): Promise<string> {
  const server = createServer({ cert: pair.certificate, key: pair.privateKey }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  const socket = connect({
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    host: '127.0.0.1',
    servername: 'localhost',
    ca,
  });
  try {
    await once(socket, 'secureConnect');
    return '';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  } finally {
    socket.destroy();
  }
}

describe('F1: a root that has followed another', () => {
  test('its servers are trusted by those who know either one, and by nobody else', async () => {
    const { old, made, pair } = await succession();
    expect(await judgedBy(old.certificate, pair)).toBe('');
    expect(await judgedBy(made.certificate, pair)).toBe('');
    expect(await judgedBy((await rootOf('root one')).certificate, pair)).not.toBe('');
  });

  test('without what certifies it, it is trusted by those who know it alone', async () => {
    const { old, made, pair } = await succession();
    const bare = { ...pair, certificate: pair.certificate.replace(pair.chain, '') };
    expect(await judgedBy(made.certificate, bare)).toBe('');
    expect(await judgedBy(old.certificate, bare)).not.toBe('');
  });

  test('the former one is certified by nobody, and certifies the new one no longer than it lives itself', async () => {
    const { old, made, authority } = await succession();
    expect(maker.isIssuedBy(authority.chain, old.certificate)).toBe(true);
    expect(maker.isIssuedBy(authority.chain, made.certificate)).toBe(false);
    const short = await maker.makeRoot({ commonName: 'short', serial: serial(), ...times, notAfter: now + DAY }, options);
    const cross = await maker.crossSign(made.certificate, short, { serial: serial(), ...times }, options);
    expect(Math.abs(Date.parse(new X509Certificate(cross).validTo) - (now + DAY))).toBeLessThan(2_000);
  });

  test('what each has issued is told apart, and both are good', async () => {
    const { old, made, authority } = await succession();
    const before = await maker.open(old, options);
    const identity = { role: 'node', aid: aid('acme'), nid: nid('n1'), registration: registrationId('r1') } as const;
    const key = (await maker.makeKey(options)).key;
    const leafOf = (issuer: typeof before) => issuer.issue({ identity, key, serial: serial(), ...times }, options);
    const [older, newer] = [await leafOf(before), await leafOf(authority)];
    expect([maker.isIssuedBy(older, old.certificate), maker.isIssuedBy(older, made.certificate)]).toEqual([true, false]);
    expect([maker.isIssuedBy(newer, old.certificate), maker.isIssuedBy(newer, made.certificate)]).toEqual([false, true]);
    const trusted = (roots: readonly string[]) =>
      [older, newer].map((leaf) => readPresented(new X509Certificate(leaf).raw, ...roots).trusted);
    expect([trusted(authority.roots), trusted([made.certificate])]).toEqual([
      [true, true],
      [false, true],
    ]);
    expect(new RecentCertificates(authority.roots, 2).read(new X509Certificate(older)).trusted).toBe(true);
  });

  test('facts and fingerprint of a root, and of what is none', async () => {
    const { made } = await succession();
    const { commonName, fingerprint, notAfter } = maker.rootFacts(made.certificate);
    expect([commonName, fingerprint]).toEqual(['root two', rootFingerprint(made.certificate)]);
    expect(Math.abs(notAfter - times.notAfter)).toBeLessThan(1_000);
    expect(rootFingerprint('no certificate')).toBeUndefined();
    expect(() => maker.rootFacts('no certificate')).toThrow('a root cannot be read');
  });
});
