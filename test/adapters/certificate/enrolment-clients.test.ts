import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { GrpcRegistrationClient } from '../../../src/adapters/certificate/grpc-registration-client.js';
import { GrpcRenewalClient } from '../../../src/adapters/certificate/grpc-renewal-client.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { CertificateAuthority } from '../../../src/ports/certificate/certificate-authority.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import type { RegistrationRequest } from '../../../src/ports/certificate/registration-client.js';
import { registrationClientContract, renewalClientContract } from '../../contract/enrolment-clients.contract.js';
import { formatFakeCertificate } from '../../fakes/fake-certificates.js';
import { FakeRegistrationClient, FakeRenewalClient } from '../../fakes/fake-enrolment-clients.js';
import { tempFolder } from '../../support/temp-folder.js';
import { registrationServer, renewalServer } from './nodeward-servers.js';
import { DAY, HOUR, lasting, MINUTE, maker, newAuthority, newPair, newSerial, node, options, server } from './support.js';

let l1: CertificateAuthority;
let l2: CertificateAuthority;
let l1Server: Pair;
let l2Server: Pair;

beforeAll(async () => {
  [l1, l2] = [await newAuthority('L1'), await newAuthority('L2')];
  [l1Server, l2Server] = [await newPair(l1, server), await newPair(l2, server)];
});

const now = () => Date.now();
const unreachable = () => new AgentError('link.unreachable', { problem: 'it was stopped' });
const answer = { nid: 'n1', privateKey: '', certificate: 'certificate', ca: 'ca' };
const request: RegistrationRequest = { machineId: 'm', account: 'a', token: 't', os: 'o', hostCidrs: [], csr: Uint8Array.of(1) };

async function rootFile(text: string): Promise<string> {
  const path = join(await tempFolder(), 'public-ca.crt');
  await writeFile(path, text);
  return path;
}

async function registrationClient(port: number, more: Partial<ConstructorParameters<typeof GrpcRegistrationClient>[0]> = {}) {
  return new GrpcRegistrationClient({ host: 'localhost', port, root: { path: await rootFile(l1.root) }, now, ...more });
}

registrationClientContract('fake', async (answering) => {
  const client = new FakeRegistrationClient(answering);
  return { client, stop: async () => client.calls.failNext(unreachable()) };
});

registrationClientContract('gRPC', async (answering) => {
  const { port, stop } = await registrationServer(l1Server, (sent) => answering(sent, options));
  return { client: await registrationClient(port), stop };
});

renewalClientContract('fake', async ({ regenerate, admit }) => {
  const refusing = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof AgentError && error.code === 'certificate.revoked')
        throw new AgentError('certificate.refused', {}, { cause: error });
      throw error;
    }
  };
  const client = new FakeRenewalClient({
    regenerate: (pair, csr) => refusing(regenerate(pair.certificate, csr)),
    tryPair: (pair) => refusing(admit(pair.certificate)),
  });
  const pair = (serial: string): Pair => ({
    certificate: formatFakeCertificate({ issuer: 'r', serial, fingerprint: '', notBefore: 0, notAfter: 1 }),
    privateKey: '',
    ca: '',
  });
  const stop = async () => {
    client.regenerating.failNext(unreachable());
    client.trying.failNext(unreachable());
  };
  return { client, pairs: [pair('aa'), pair('bb')], stop };
});

renewalClientContract('gRPC', async (answering) => {
  const { port, stop } = await renewalServer(l2Server, answering);
  return {
    client: new GrpcRenewalClient({ host: 'localhost', port, now }),
    pairs: [await newPair(l2), await newPair(l2)],
    stop,
  };
});

describe('the root of the registration port', () => {
  test('is the only one that is trusted', async () => {
    const { port } = await registrationServer(l1Server, async () => answer);
    const client = await registrationClient(port, { root: { path: await rootFile(l2.root) } });
    await client.check(options);
    await expect(client.register(request, options)).rejects.toMatchObject({
      code: 'certificate.untrusted',
      facts: { problem: expect.stringMatching(/^the certificate of localhost:\d+ is not good: .*(SELF_SIGNED|UNABLE_TO)/) },
    });
  });

  test('may be pinned by its SHA-256, in any spelling', async () => {
    const { port } = await registrationServer(l1Server, async () => answer);
    const digest = createHash('sha256').update(l1.root).digest('hex');
    for (const sha256 of [digest, digest.toUpperCase(), digest.replaceAll(/(..)(?=.)/g, '$1:')]) {
      const client = await registrationClient(port, { root: { path: await rootFile(l1.root), sha256 } });
      expect(await client.register(request, options)).toEqual(answer);
    }
  });

  test.each<{ name: string; text: () => string; sha256?: string; problem: RegExp }>([
    {
      name: 'another one than was pinned',
      text: () => l1.root,
      sha256: 'ab'.repeat(32),
      problem: /is not the one that was pinned: its SHA-256 is/,
    },
    { name: 'the error page of a proxy', text: () => '<!DOCTYPE html><html>', problem: /is a web page, no certificate/ },
    { name: 'noise', text: () => 'hello', problem: /is no certificate in PEM/ },
    { name: 'the certificate of a server', text: () => l1Server.certificate, problem: /is the certificate of no authority/ },
    { name: 'empty', text: () => '', problem: /is no certificate in PEM/ },
  ])('$name is named, and nothing is sent', async ({ text, sha256, problem }) => {
    let called = 0;
    const { port } = await registrationServer(l1Server, async () => {
      called += 1;
      return answer;
    });
    const client = await registrationClient(port, { root: { path: await rootFile(text()), sha256 } });
    const expected = { code: 'certificate.root_invalid', facts: { problem: expect.stringMatching(problem) } };
    await expect(client.check(options)).rejects.toMatchObject(expected);
    await expect(client.register(request, options)).rejects.toMatchObject(expected);
    expect(called).toBe(0);
  });

  test('one that is not there is named', async () => {
    const client = await registrationClient(1, { root: { path: '/nowhere/ca.crt' } });
    await expect(client.check(options)).rejects.toMatchObject({ facts: { problem: '/nowhere/ca.crt is not there' } });
  });
});

/** A port of TCP that does with a connection what it is told. */
async function tcpPort(serve: (socket: Socket) => void): Promise<number> {
  const listening: Server = createServer((socket) => {
    socket.on('error', () => {});
    serve(socket);
  }).listen(0, '127.0.0.1');
  await once(listening, 'listening');
  onTestFinished(() => {
    listening.close();
  });
  const address = listening.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

describe('why a server is not reached', () => {
  const problemOf = async (client: GrpcRegistrationClient) => {
    const error: unknown = await client.register(request, options).catch((caught: unknown) => caught);
    return error instanceof AgentError ? { code: error.code, problem: error.facts.problem, remedy: error.remedy } : error;
  };

  test('its name is not known: a fault of DNS', async () => {
    const client = await registrationClient(9191, { host: 'no-such-host.invalid' });
    expect(await problemOf(client)).toMatchObject({
      code: 'link.unreachable',
      problem: expect.stringMatching(/^the name of no-such-host\.invalid:9191 is not known: E[A-Z_]+$/),
      remedy: expect.stringContaining('resolv.conf'),
    });
  });

  test('its port is closed', async () => {
    const { port, stop } = await registrationServer(l1Server, async () => answer);
    await stop();
    expect(await problemOf(await registrationClient(port))).toMatchObject({
      code: 'link.unreachable',
      problem: `nothing listens at localhost:${port}: ECONNREFUSED`,
      remedy: expect.stringContaining('check the port'),
    });
  });

  test('what listens there is silent', { timeout: 20_000 }, async () => {
    const port = await tcpPort(() => {});
    expect(await problemOf(await registrationClient(port, { timeoutMs: 300 }))).toMatchObject({
      code: 'link.unreachable',
      problem: `localhost:${port} does not answer: the port took the connection, but said nothing within 5 s`,
    });
  });

  test('what listens there speaks no TLS', async () => {
    const port = await tcpPort((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await problemOf(await registrationClient(port, { timeoutMs: 2_000 }))).toMatchObject({
      code: 'certificate.untrusted',
      problem: expect.stringMatching(new RegExp(`^the certificate of localhost:${port} is not good: `)),
    });
  });

  test('its certificate is of another host', async () => {
    const { key, privateKey } = await maker.makeKey(options);
    const times = lasting(-MINUTE, DAY);
    const certificate = await l1.issue(
      { identity: server, key, serial: newSerial(), hosts: ['other.example'], ...times },
      options,
    );
    const { port } = await registrationServer({ certificate, privateKey, ca: l1.root }, async () => answer);
    expect(await problemOf(await registrationClient(port))).toMatchObject({
      code: 'certificate.untrusted',
      problem: expect.stringMatching(/is not good: it is not for this name \(.*ALTNAME/),
    });
  });

  test('F3: its certificate is not valid yet: the clock of this machine is named', async () => {
    const early = await newPair(l1, server, lasting(2 * HOUR, 90 * DAY));
    const { port } = await registrationServer(early, async () => answer);
    expect(await problemOf(await registrationClient(port))).toMatchObject({
      code: 'certificate.untrusted',
      problem: expect.stringMatching(
        /it is not valid yet \(CERT_NOT_YET_VALID\); this machine's clock says .*: the clock is at least 119 min behind$/,
      ),
      remedy: 'set the clock of this machine and try again',
    });
  });

  test('F3: its certificate has expired: that, or the clock', async () => {
    const late = await newPair(l1, server, lasting(-90 * DAY, -2 * HOUR));
    const { port } = await registrationServer(late, async () => answer);
    expect(await problemOf(await registrationClient(port))).toMatchObject({
      code: 'certificate.untrusted',
      problem: expect.stringMatching(
        /it has expired \(CERT_HAS_EXPIRED\); this machine's clock says .*: it has expired, or the clock is 2 h or more ahead$/,
      ),
    });
  });

  test('F3: who answers tells its time', async () => {
    const date = new Date(Date.now() + 2 * HOUR + 30_000).toUTCString();
    const refuse = () => Promise.reject(new AgentError('certificate.token_refused', { problem: 'it has expired' }));
    const { port } = await registrationServer(l1Server, refuse, { date });
    expect(await problemOf(await registrationClient(port))).toMatchObject({
      code: 'certificate.token_refused',
      problem: expect.stringMatching(/refused: it has expired; this machine's clock is 2 h behind the server's/),
    });
  });

  test('it answers, but cannot serve now', async () => {
    const fail = () => Promise.reject(new AgentError('store.unavailable', { problem: 'the disk is full' }));
    const { port } = await registrationServer(l1Server, fail);
    expect(await problemOf(await registrationClient(port))).toMatchObject({
      code: 'link.unreachable',
      problem: `localhost:${port} can be reached, but cannot serve this now: the disk is full`,
    });
  });

  test('it takes too long', async () => {
    const { port } = await registrationServer(l1Server, () => new Promise(() => {}));
    expect(await problemOf(await registrationClient(port, { timeoutMs: 200 }))).toMatchObject({
      code: 'link.unreachable',
      problem: expect.stringContaining('can be reached, but did not answer in time'),
    });
  });

  test('an abort ends a call that waits', async () => {
    const { port } = await registrationServer(l1Server, () => new Promise(() => {}));
    const stopper = new AbortController();
    const calling = (await registrationClient(port)).register(request, { signal: stopper.signal });
    setTimeout(() => stopper.abort(new Error('enough')), 50);
    await expect(calling).rejects.toThrow('enough');
  });
});

describe('the certificate of a node on the mutual channel', () => {
  const renewal = async (admit: (certificate: string) => Promise<void> = async () => {}) => {
    const { port } = await renewalServer(l2Server, {
      regenerate: async () => ({ privateKey: '', certificate: '', ca: '' }),
      admit,
    });
    return new GrpcRenewalClient({ host: 'localhost', port, now, timeoutMs: 5_000 });
  };

  test('of another authority is refused by the server, not unreachable', async () => {
    const stranger = { ...(await newPair(await newAuthority())), ca: l2.root };
    await expect((await renewal()).tryPair(stranger, options)).rejects.toMatchObject({
      code: 'certificate.refused',
      facts: { problem: expect.stringMatching(/refused this node's certificate/) },
    });
  });

  test('that has expired as well', async () => {
    const expired = await newPair(l2, node, lasting(-90 * DAY, -MINUTE));
    await expect((await renewal()).tryPair(expired, options)).rejects.toMatchObject({ code: 'certificate.refused' });
  });

  test('a server of another authority is not trusted', async () => {
    const pair = { ...(await newPair(l2)), ca: l1.root };
    await expect((await renewal()).tryPair(pair, options)).rejects.toMatchObject({ code: 'certificate.untrusted' });
  });

  test('a server that knows the call not, or fails in it, has taken the certificate', async () => {
    for (const code of ['link.refused', 'config.invalid', 'certificate.failed'] as const) {
      const client = await renewal(() => Promise.reject(new AgentError(code, { problem: 'no' })));
      const trying = client.tryPair(await newPair(l2), options);
      // `link.refused` is a denial.
      if (code === 'link.refused') await expect(trying).rejects.toMatchObject({ code: 'certificate.refused' });
      else await trying;
    }
  });

  test('a pair that is none is named without its key', async () => {
    const pair = { ...(await newPair(l2)), privateKey: 'not a key' };
    const error: unknown = await (await renewal()).tryPair(pair, options).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'certificate.unusable' });
    expect(String(error)).not.toContain('not a key');
  });

  test('RSA in PKCS#1, as a server makes it, is used', async () => {
    const made = await l2.makeKey(options);
    const certificate = await l2.issue(
      { identity: node, key: made.key, serial: '42'.repeat(16), ...lasting(-MINUTE, DAY) },
      options,
    );
    await (await renewal()).tryPair({ certificate, privateKey: made.privateKey, ca: l2.root }, options);
  });
});
