import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readPresented } from '../../../src/adapters/certificate/certificate-reader.js';
import { checkedPair } from '../../../src/adapters/certificate/pair-reader.js';
import { Pkcs10CertificateRequest } from '../../../src/adapters/certificate/x509.js';
import { certificateAuthorityContract } from '../../contract/certificate-authority.contract.js';
import { FakeAuthorityMaker, FakeKeyMaker } from '../../fakes/fake-certificate-authority.js';
import { checkedFakePair, presentFake } from '../../fakes/fake-certificates.js';
import { tempFolder } from '../../support/temp-folder.js';
import { openssl } from './openssl.js';
import { DAY, keys, lasting, MINUTE, maker, newAuthority, newPair, newSerial, node, options, server } from './support.js';

certificateAuthorityContract('fake', {
  maker: new FakeAuthorityMaker(),
  keys: new FakeKeyMaker(),
  present: presentFake,
  check: checkedFakePair,
});

certificateAuthorityContract('X.509', {
  maker,
  keys,
  present: (certificate, root) => readPresented(new X509Certificate(certificate).raw, root),
  check: checkedPair,
});

describe('F2: keys that are taken', () => {
  test.each([
    ['rsa:2048', true],
    ['rsa:3072', true],
    ['rsa:4096', true],
    ['ec -pkeyopt ec_paramgen_curve:P-256', true],
    ['ec -pkeyopt ec_paramgen_curve:P-384', true],
    ['ed25519', true],
    ['rsa:1024', false],
    ['rsa:4160', false],
    ['ec -pkeyopt ec_paramgen_curve:P-521', false],
    ['ec -pkeyopt ec_paramgen_curve:secp256k1', false],
    ['ed448', false],
  ])('%s: %s', { timeout: 60_000 }, async (kind, taken) => {
    const folder = await tempFolder();
    const [csr, key] = [join(folder, 'csr'), join(folder, 'key')];
    await openssl(`req -new -newkey ${kind} -nodes -keyout ${key} -out ${csr} -outform DER -subj /O=evil/CN=admin`);
    const der = await readFile(csr);
    const authority = await newAuthority();
    const proving = authority.proveKey(der, options);
    if (!taken) return expect(proving).rejects.toMatchObject({ code: 'certificate.csr_invalid' });
    const certificate = await authority.issue(
      { identity: node, key: await proving, serial: newSerial(), ...lasting(-MINUTE, DAY) },
      options,
    );
    checkedPair({ certificate, privateKey: await readText(key), ca: authority.root });
    // Everything else in the request is ignored.
    expect(certificate).not.toContain('evil');
    expect(new X509Certificate(certificate).subject).toBe('O=acme\nCN=n1');
    await writeFile(join(folder, 'crt'), certificate);
    await writeFile(join(folder, 'ca'), authority.root);
    expect(await openssl(`verify -purpose sslclient -CAfile ${folder}/ca ${folder}/crt`)).toContain('OK');
  });

  test('a request that asks for another name, or for an authority, gets neither', async () => {
    const folder = await tempFolder();
    const extensions =
      '-addext subjectAltName=URI:holdfast:admin:x:admin,DNS:evil.example -addext basicConstraints=critical,CA:TRUE';
    await openssl(
      `req -new -newkey rsa:2048 -nodes -keyout ${folder}/key -out ${folder}/csr -outform DER -subj /CN=x ${extensions}`,
    );
    const authority = await newAuthority();
    const key = await authority.proveKey(await readFile(join(folder, 'csr')), options);
    const certificate = await authority.issue({ identity: node, key, serial: newSerial(), ...lasting(-MINUTE, DAY) }, options);
    const shown = new X509Certificate(certificate);
    expect(shown.subjectAltName).toBe('URI:holdfast:node:acme:n1:r1');
    expect(shown.ca).toBe(false);
  });

  test('a request that was signed with another key is refused', async () => {
    const { csr } = await keys.makeRequest(options);
    const changed = Uint8Array.from(csr);
    changed[changed.length - 5] = (changed[changed.length - 5] ?? 0) ^ 1;
    await expect((await newAuthority()).proveKey(changed, options)).rejects.toMatchObject({
      code: 'certificate.csr_invalid',
    });
  });

  test('one whose key was swapped for another is refused', async () => {
    const [ours, theirs] = [await keys.makeRequest(options), await keys.makeRequest(options)];
    const point = (csr: Uint8Array) =>
      Buffer.from(new Pkcs10CertificateRequest(Uint8Array.from(csr)).publicKey.rawData).subarray(-64);
    const at = Buffer.from(ours.csr).indexOf(point(ours.csr));
    const swapped = Buffer.from(ours.csr);
    point(theirs.csr).copy(swapped, at);
    await expect((await newAuthority()).proveKey(swapped, options)).rejects.toMatchObject({
      facts: { problem: 'the request is not signed with its own key' },
    });
  });
});

describe('a key that we make', () => {
  test('F2: is RSA 2048 in PKCS#1, which older agents read', async () => {
    const { privateKey } = await (await newAuthority()).makeKey(options);
    expect(privateKey).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n/);
    expect(createPrivateKey(privateKey).asymmetricKeyDetails).toMatchObject({ modulusLength: 2_048, publicExponent: 65_537n });
  });

  test('of many at once the main thread goes on', { timeout: 60_000 }, async () => {
    const authority = await newAuthority();
    let longest = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 1);
    const made = await Promise.all(Array.from({ length: 12 }, () => authority.makeKey(options)));
    clearInterval(timer);
    expect(new Set(made.map(({ privateKey }) => privateKey)).size).toBe(12);
    // Made on the main thread, one takes 50 ms at least and 12 of them 600 in a row without a break.
    expect(longest).toBeLessThan(500);
  });
});

describe('as openssl sees it', () => {
  test('a node, signed by the root', async () => {
    const folder = await tempFolder();
    const authority = await newAuthority('Root of nodes');
    const pair = await newPair(authority);
    await writeFile(join(folder, 'crt'), pair.certificate);
    await writeFile(join(folder, 'ca'), authority.root);
    expect(await openssl(`verify -x509_strict -purpose sslclient -CAfile ${folder}/ca ${folder}/crt`)).toContain('OK');
    await expect(openssl(`verify -purpose sslserver -CAfile ${folder}/ca ${folder}/crt`)).rejects.toThrow(/purpose/);
    const text = await openssl(`x509 -in ${folder}/crt -noout -text`);
    expect(text).toContain('Subject: O = acme, CN = n1');
    expect(text).toContain('Issuer: CN = Root of nodes');
    expect(text).toMatch(/X509v3 Basic Constraints: critical\s+CA:FALSE/);
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Digital Signature\n/);
    expect(text).toMatch(/X509v3 Extended Key Usage: \s+TLS Web Client Authentication\n/);
    expect(text).toMatch(/X509v3 Subject Alternative Name: \s+URI:holdfast:node:acme:n1:r1\n/);
    expect(text).toContain('Signature Algorithm: ecdsa-with-SHA256');
  });

  test('a server, for its names and addresses', async () => {
    const folder = await tempFolder();
    const authority = await newAuthority();
    const pair = await newPair(authority, server);
    await writeFile(join(folder, 'crt'), pair.certificate);
    await writeFile(join(folder, 'ca'), authority.root);
    const verify = (name: string) => openssl(`verify -x509_strict -purpose sslserver ${name} -CAfile ${folder}/ca ${folder}/crt`);
    expect(await verify('-verify_hostname localhost')).toContain('OK');
    expect(await verify('-verify_ip 127.0.0.1')).toContain('OK');
    expect(await verify('-verify_ip ::1')).toContain('OK');
    await expect(verify('-verify_hostname other.example')).rejects.toThrow(/mismatch/i);
    await expect(openssl(`verify -purpose sslclient -CAfile ${folder}/ca ${folder}/crt`)).rejects.toThrow(/purpose/);
  });

  test('F1: a root, that certifies no further authorities', async () => {
    const folder = await tempFolder();
    const { root } = await newAuthority();
    await writeFile(join(folder, 'ca'), root);
    const text = await openssl(`x509 -in ${folder}/ca -noout -text`);
    expect(text).toMatch(/X509v3 Basic Constraints: critical\s+CA:TRUE, pathlen:1/);
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Certificate Sign, CRL Sign/);
    expect(root.match(/-----BEGIN CERTIFICATE-----/g)).toHaveLength(1);
    expect(await openssl(`verify -x509_strict -CAfile ${folder}/ca ${folder}/ca`)).toContain('OK');
  });

  test('serials and times are what was asked for', async () => {
    const authority = await newAuthority();
    const { key } = await maker.makeKey(options);
    const serial = 'ff000000000000000000000000000001'.replace(/^ff/, '7f');
    const validity = { notBefore: Date.UTC(2049, 11, 31), notAfter: Date.UTC(2050, 0, 1) };
    const certificate = await authority.issue({ identity: node, key, serial, ...validity }, options);
    expect(readPresented(new X509Certificate(certificate).raw, authority.root)).toMatchObject({ serial, ...validity });
  });
});

describe('whom a certificate names', () => {
  test('is not what a name of a host can be made to look like', async () => {
    const folder = await tempFolder();
    const trick = 'x, URI:holdfast:admin:mallory:admin, DNS:y';
    await writeFile(
      join(folder, 'cnf'),
      `[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n[ext]\nsubjectAltName=@alt\n[alt]\nDNS.1=${trick}\n`,
    );
    await openssl(`req -x509 -newkey rsa:2048 -nodes -keyout ${folder}/key -out ${folder}/crt -subj /CN=x -config ${folder}/cnf`);
    const der = new X509Certificate(await readText(join(folder, 'crt'))).raw;
    expect(readPresented(der, await readText(join(folder, 'crt'))).identity).toBeUndefined();
  });

  test('what is no certificate is an error', () => {
    expect(() => readPresented(new Uint8Array(10), '')).toThrow();
  });

  test('one without names names nobody', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const folder = await tempFolder();
    await writeFile(join(folder, 'key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await openssl(`req -x509 -key ${folder}/key -out ${folder}/crt -subj /O=acme/CN=n1`);
    const pem = await readText(join(folder, 'crt'));
    expect(readPresented(new X509Certificate(pem).raw, pem)).toMatchObject({ identity: undefined, trusted: true });
  });
});

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8');
}
