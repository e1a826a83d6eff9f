import { describe, expect, test } from 'vitest';
import {
  certificateKey,
  encodeRecord,
  issuerKey,
  nodeKey,
  revocationKey,
  tokenKey,
} from '../../../src/domain/certificate/records.js';
import {
  decodeAdmin,
  decodeCertificate,
  decodeIssuer,
  decodeNode,
  decodeRevocation,
  decodeToken,
} from '../../../src/domain/certificate/schema.js';
import type { TokenRecord } from '../../../src/domain/certificate/token.js';
import { held, NOW, nodeIdentity, nodeRecord, revocation } from './support.js';

const { aid, nid, registration } = nodeIdentity;
const token: TokenRecord = {
  id: '0123456789ab',
  digest: 'd',
  aid,
  purpose: { kind: 'replace', nid },
  created: NOW,
  expires: NOW + 1,
  used: { at: NOW, machineId: 'm1', nid, registration, serial: 'aa', fingerprint: 'f1' },
};
const certificate = { serial: 'aa', nid, registration, notAfter: NOW, certificate: 'PEM' };
const admin = { serial: 'aa', aid, name: 'alice', grade: 'operator', issued: NOW, notAfter: NOW + 1, by: 'local:0' } as const;
const issuer = { certificate: 'PEM', privateKey: 'SECRET' };

describe('records', () => {
  test('are read as they were written', () => {
    const node = nodeRecord({ current: held('aa', { firstUsed: NOW }), pending: held('bb'), renewals: [NOW] });
    expect(decodeNode('k', encodeRecord(node))).toEqual(node);
    expect(decodeNode('k', encodeRecord(nodeRecord()))).toEqual(nodeRecord());
    expect(decodeToken('k', encodeRecord(token))).toEqual(token);
    expect(decodeToken('k', encodeRecord({ ...token, used: undefined, purpose: { kind: 'join' } }))).toEqual({
      ...token,
      used: undefined,
      purpose: { kind: 'join' },
    });
    expect(decodeCertificate('k', encodeRecord(certificate))).toEqual(certificate);
    expect(decodeAdmin('k', encodeRecord(admin))).toEqual(admin);
    expect(decodeRevocation('k', encodeRecord(revocation({})))).toEqual(revocation({}));
    expect(decodeIssuer('k', encodeRecord(issuer))).toEqual(issuer);
  });

  test('what a newer version added is no error', () => {
    expect(decodeNode('k', JSON.stringify({ ...nodeRecord(), labels: { a: 'b' } }))).toEqual(nodeRecord());
  });

  test.each([
    ['no JSON', '{', 'enrol/node/n1 is not JSON'],
    ['another shape', '[]', 'enrol/node/n1 cannot be read: the whole value'],
    ['a name that is none', JSON.stringify({ ...nodeRecord(), nid: 'a/b' }), 'enrol/node/n1 cannot be read: nid'],
    [
      'a part that lacks something',
      JSON.stringify({ ...nodeRecord(), current: { serial: 'aa' } }),
      'enrol/node/n1 cannot be read: current.fingerprint, current.issued, current.notAfter',
    ],
  ])('%s is named', (_, text, problem) => {
    expect(() => decodeNode('enrol/node/n1', text)).toThrow(
      expect.objectContaining({ code: 'store.malformed', facts: { problem } }),
    );
  });

  test('an issuer that cannot be read does not tell its key', () => {
    const text = JSON.stringify({ privateKey: 'SECRET' });
    expect(() => decodeIssuer('ca/l2', text)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('SECRET') }),
    );
  });

  test('have their places', () => {
    expect(nodeKey(nid)).toBe('enrol/node/n1');
    expect(certificateKey('aa')).toBe('enrol/certificate/aa');
    expect(tokenKey('t')).toBe('enrol/token/t');
    expect(revocationKey('serial', 'aa')).toBe('enrol/revoked/serial/aa');
    expect(issuerKey('l2')).toBe('ca/l2');
  });
});

test.each([
  ['a role that there is not', { grade: 'root' }, 'grade'],
  ['a name with a colon', { name: 'alice:admin' }, 'name'],
])('of an admin: %s', (_, wrong, place) => {
  expect(() => decodeAdmin('enrol/admin/aa', JSON.stringify({ ...admin, ...wrong }))).toThrow(
    `enrol/admin/aa cannot be read: ${place}`,
  );
});
