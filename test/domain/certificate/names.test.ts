import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CertificateIdentity } from '../../../src/domain/certificate/model.js';
import {
  certificateName,
  describeIdentity,
  identityOfUris,
  identityUri,
  serialOf,
  subjectOf,
} from '../../../src/domain/certificate/names.js';
import { aid, nid, registrationId } from '../../../src/domain/link/model.js';
import { nodeIdentity } from './support.js';

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);
const identity: fc.Arbitrary<CertificateIdentity> = fc.oneof(
  fc.record({
    role: fc.constant('node' as const),
    aid: name.map(aid),
    nid: name.map(nid),
    registration: name.map(registrationId),
  }),
  fc.record({ role: fc.constant('server' as const), name }),
  fc.record({
    role: fc.constant('admin' as const),
    aid: name.map(aid),
    name,
    grade: fc.constantFrom('viewer' as const, 'operator' as const, 'admin' as const),
  }),
);

describe('F2: the identity is a URI', () => {
  test.each<readonly [CertificateIdentity, string]>([
    [nodeIdentity, 'holdfast:node:acme:n1:r1'],
    [{ role: 'server', name: 'a' }, 'holdfast:server:a'],
    [{ role: 'admin', aid: aid('acme'), name: 'alice', grade: 'operator' }, 'holdfast:admin:acme:alice:operator'],
  ])('%j is %s', (value, uri) => {
    expect(identityUri(value)).toBe(uri);
    expect(identityOfUris([uri])).toEqual(value);
  });

  test('what is written is what is read', () => {
    fc.assert(
      fc.property(identity, (value) => {
        expect(identityOfUris([identityUri(value)])).toEqual(value);
      }),
    );
  });

  test('two identities have two URIs', () => {
    fc.assert(
      fc.property(identity, identity, (a, b) => {
        expect(identityUri(a) === identityUri(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });

  test.each([
    ['nobody', []],
    ['of others', ['https://example.org', 'spiffe://acme/n1']],
    ['two of ours', ['holdfast:node:acme:n1:r1', 'holdfast:admin:acme:alice:admin']],
    ['an unknown role', ['holdfast:root:x']],
    ['a node without registration', ['holdfast:node:acme:n1']],
    ['a node with more', ['holdfast:node:acme:n1:r1:r2']],
    ['an empty word', ['holdfast:node::n1:r1']],
    ['a word that is no name', ['holdfast:node:acme:n/1:r1']],
    ['an unknown grade', ['holdfast:admin:acme:alice:root']],
    ['an admin without account', ['holdfast:admin:alice:admin']],
    ['no role', ['holdfast:']],
  ])('%s names nobody', (_, uris) => {
    expect(identityOfUris(uris)).toBeUndefined();
  });

  test('URIs of others beside ours are nothing to us', () => {
    expect(identityOfUris(['https://example.org', 'holdfast:node:acme:n1:r1'])).toEqual(nodeIdentity);
  });
});

test('F2: common name and organisation are for people', () => {
  expect(subjectOf(nodeIdentity)).toEqual({ commonName: 'n1', organization: 'acme' });
  expect(subjectOf({ role: 'server', name: 'a' })).toEqual({ commonName: 'a' });
  expect(describeIdentity(nodeIdentity)).toBe('node n1');
  const alice = { role: 'admin', aid: aid('acme'), name: 'alice', grade: 'viewer' } as const;
  expect(subjectOf(alice)).toEqual({ commonName: 'alice', organization: 'acme' });
  expect(describeIdentity(alice)).toBe('admin alice');
});

test('a name with a colon would be another identity', () => {
  expect(() => certificateName('alice:admin')).toThrow(RangeError);
  expect(certificateName('alice')).toBe('alice');
});

describe('F2: serials', () => {
  test('have 128 bits, are positive and never shorter', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        expect(serialOf(bytes)).toMatch(/^[4-7][0-9a-f]{31}$/);
        expect(serialOf(bytes).slice(2)).toBe(Buffer.from(bytes.subarray(1)).toString('hex'));
      }),
    );
  });

  test('are not made of less', () => {
    expect(() => serialOf(new Uint8Array(15))).toThrow('16 bytes are needed, got 15');
  });
});
