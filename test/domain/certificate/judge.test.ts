import { describe, expect, test } from 'vitest';
import { codeOfVerdict, judgeCertificate, type PresentedCertificate } from '../../../src/domain/certificate/judge.js';
import type { Revocation } from '../../../src/domain/certificate/revocation.js';
import { concerns, revocationOf } from '../../../src/domain/certificate/revocation.js';
import { errorCodes } from '../../../src/domain/kernel/errors.js';
import { aid, registrationId } from '../../../src/domain/link/model.js';
import { DAY, HOUR, MINUTE, NOW, nodeIdentity, revocation, revocations } from './support.js';

const certificate = (more: Partial<PresentedCertificate> = {}): PresentedCertificate => ({
  identity: nodeIdentity,
  serial: 'aa',
  notBefore: NOW - DAY,
  notAfter: NOW + DAY,
  trusted: true,
  ...more,
});
const judge = (shown: PresentedCertificate, revoked: readonly Revocation[] = [], now = NOW) =>
  judgeCertificate(shown, 'node', revocations(...revoked), now);

describe('F3: a certificate', () => {
  test('that is good', () => {
    expect(judge(certificate())).toEqual({ verdict: 'good', identity: nodeIdentity });
  });

  test.each<{ name: string; shown: PresentedCertificate; revoked?: Revocation[]; verdict: string; problem: string }>([
    {
      name: 'that has expired',
      shown: certificate({ notAfter: NOW - 2 * HOUR }),
      verdict: 'expired',
      problem:
        "certificate aa of node n1 expired 2 h ago; it is valid from 2026-01-30T12:00:00Z to 2026-01-31T10:00:00Z, and the server's clock says 2026-01-31T12:00:00Z",
    },
    {
      name: 'that is not valid yet',
      shown: certificate({ notBefore: NOW + 2 * HOUR }),
      verdict: 'not_yet_valid',
      problem:
        "certificate aa of node n1 is not valid yet, for another 2 h; it is valid from 2026-01-31T14:00:00Z to 2026-02-01T12:00:00Z, and the server's clock says 2026-01-31T12:00:00Z",
    },
    {
      name: 'of another authority',
      shown: certificate({ trusted: false }),
      verdict: 'wrong_issuer',
      problem:
        "certificate aa of node n1 was not issued by the authority that is asked for here; it is valid from 2026-01-30T12:00:00Z to 2026-02-01T12:00:00Z, and the server's clock says 2026-01-31T12:00:00Z",
    },
    {
      name: 'of an admin where a node is asked for',
      shown: certificate({ identity: { role: 'admin', aid: aid('acme'), name: 'alice', grade: 'admin' } }),
      verdict: 'wrong_role',
      problem:
        "certificate aa of admin alice has the role admin; node is asked for here; it is valid from 2026-01-30T12:00:00Z to 2026-02-01T12:00:00Z, and the server's clock says 2026-01-31T12:00:00Z",
    },
    {
      name: 'that names nobody',
      shown: certificate({ identity: undefined }),
      verdict: 'wrong_role',
      problem:
        "certificate aa names nobody; node is asked for here; it is valid from 2026-01-30T12:00:00Z to 2026-02-01T12:00:00Z, and the server's clock says 2026-01-31T12:00:00Z",
    },
    {
      name: 'that was revoked',
      shown: certificate(),
      revoked: [revocation({})],
      verdict: 'revoked',
      problem:
        "certificate aa of node n1 was revoked: its key was seen elsewhere; it is valid from 2026-01-30T12:00:00Z to 2026-02-01T12:00:00Z, and the server's clock says 2026-01-31T12:00:00Z",
    },
  ])("$name is named so, with both times and the server's clock", ({ shown, revoked, verdict, problem }) => {
    expect(judge(shown, revoked)).toEqual({ verdict, problem });
  });

  test('of whom nothing can be believed is not judged by what it says', () => {
    const shown = certificate({ trusted: false, notAfter: NOW - DAY, identity: undefined });
    expect(judge(shown)).toMatchObject({ verdict: 'wrong_issuer' });
  });

  test('is good at both of its ends', () => {
    const { notBefore, notAfter } = certificate();
    expect(judge(certificate(), [], notBefore)).toMatchObject({ verdict: 'good' });
    expect(judge(certificate(), [], notAfter)).toMatchObject({ verdict: 'good' });
    expect(judge(certificate(), [], notBefore - 1)).toMatchObject({ verdict: 'not_yet_valid' });
    expect(judge(certificate(), [], notAfter + 1)).toMatchObject({ verdict: 'expired' });
  });

  test('of each bad kind has a code', () => {
    for (const verdict of ['wrong_issuer', 'wrong_role', 'expired', 'not_yet_valid', 'revoked'] as const) {
      expect(errorCodes[codeOfVerdict({ verdict, problem: '' })].kind).toBe('denied');
    }
  });

  test.each(['server', 'admin'] as const)('F2: of a node is refused where a %s is asked for', (role) => {
    expect(judgeCertificate(certificate(), role, revocations(), NOW)).toMatchObject({ verdict: 'wrong_role' });
  });
});

describe('F4: revocation', () => {
  const shown = certificate();
  const of = (...all: readonly Revocation[]) => revocationOf({ ...shown, identity: nodeIdentity }, revocations(...all), NOW);

  test.each<Partial<Revocation>>([
    { of: 'serial', id: 'aa' },
    { of: 'registration', id: 'r1' },
    { of: 'node', id: 'n1' },
  ])('is by %j', (named) => {
    const revoked = revocation(named);
    expect(of(revoked)).toEqual(revoked);
    expect(concerns(revoked, { ...shown, identity: nodeIdentity })).toBe(true);
  });

  test.each<Partial<Revocation>>([
    { of: 'serial', id: 'ab' },
    { of: 'registration', id: 'n1' },
    { of: 'node', id: 'r1' },
  ])('of %j is of others', (named) => {
    expect(of(revocation(named))).toBeUndefined();
    expect(concerns(revocation(named), { ...shown, identity: nodeIdentity })).toBe(false);
  });

  test('counts from its time on', () => {
    expect(of(revocation({ from: NOW + MINUTE }))).toBeUndefined();
    expect(of(revocation({ from: NOW }))).toBeDefined();
  });

  test('of a registration leaves the next one of the same node alone', () => {
    const next = { ...nodeIdentity, registration: registrationId('r2') };
    const revoked = revocations(revocation({ of: 'registration', id: 'r1' }));
    expect(revocationOf({ serial: 'bb', identity: next }, revoked, NOW)).toBeUndefined();
  });

  test('by node is nothing to servers and admins of that name', () => {
    const server = { serial: 'bb', identity: { role: 'server', name: 'n1' } } as const;
    const revoked = revocation({ of: 'node', id: 'n1' });
    expect(revocationOf(server, revocations(revoked), NOW)).toBeUndefined();
    expect(concerns(revoked, server)).toBe(false);
    expect(concerns({ ...revoked, of: 'registration' }, server)).toBe(false);
  });
});
