import { hash, randomBytes, X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readPresented, rootFingerprint } from '../../../src/adapters/certificate/certificate-reader.js';
import { FilePairStore } from '../../../src/adapters/certificate/file-pair-store.js';
import { GrpcRegistrationClient } from '../../../src/adapters/certificate/grpc-registration-client.js';
import { GrpcRenewalClient } from '../../../src/adapters/certificate/grpc-renewal-client.js';
import { SealerKeyFile } from '../../../src/adapters/certificate/sealer-key-file.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { ControlPlaneIdentity } from '../../../src/app/certificate/control-plane-identity.js';
import { EnrolmentService } from '../../../src/app/certificate/enrolment-service.js';
import { EnrolmentView } from '../../../src/app/certificate/enrolment-view.js';
import { openSealer } from '../../../src/app/certificate/open-sealer.js';
import { OwnCertificates } from '../../../src/app/certificate/own-certificates.js';
import { registerNode } from '../../../src/app/certificate/register-node.js';
import { RegistrationService } from '../../../src/app/certificate/registration-service.js';
import { RenewalSubsystem } from '../../../src/app/certificate/renewal-subsystem.js';
import { TokenService } from '../../../src/app/certificate/token-service.js';
import { codeOfVerdict, judgeCertificate } from '../../../src/domain/certificate/judge.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { aid, type Nid, nid } from '../../../src/domain/link/model.js';
import type { PeerNode } from '../../../src/ports/driving/node-streams.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeHostFacts } from '../../fakes/fake-host-facts.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { tempFolder } from '../../support/temp-folder.js';
import { registrationServer, renewalServer } from './nodeward-servers.js';
import { DAY, HOUR, keys, lasting, maker, newAuthority, newPair, node, options } from './support.js';

/** A clock that is some time off. */
class OffsetClock extends SystemClock {
  offset = 0;

  override now(): number {
    return super.now() + this.offset;
  }
}

/** A whole control plane with its two ports, but for its store. @param offset of its clock; TLS goes by the machine's */
async function controlPlane(offset = 0) {
  const clock = new OffsetClock({ unref: true });
  clock.offset = offset;
  const [store, logger] = [new FakeControlStore(), new FakeLogger()];
  const sealer = await openSealer(store, new SealerKeyFile(join(await tempFolder(), 'seal.key')), options);
  const parts = { store, clock, logger, randomBytes, sha256: (text: string) => hash('sha256', text, 'hex') };
  const authorities = await new ControlPlaneIdentity({ ...parts, sealer, maker }).open(options);
  const view = new EnrolmentView({ ...parts, random: Math.random });
  const audit = { append: async () => {} };
  const service = new EnrolmentService({
    ...parts,
    view,
    authority: authorities.l2,
    audit,
    onEvent: () => {},
    onRegistered: async () => {},
  });
  const stopper = new AbortController();
  const following = view.follow(stopper.signal);
  onTestFinished(async () => {
    stopper.abort();
    await service.stop();
    await following;
  });
  await view.loaded();
  const own = new OwnCertificates({ ...parts, authorities, maker });
  const admit = (certificate: string): PeerNode => {
    const shown = readPresented(new X509Certificate(certificate).raw, authorities.l2.root);
    const verdict = judgeCertificate(shown, 'node', view, clock.now());
    if (verdict.verdict !== 'good') throw new AgentError(codeOfVerdict(verdict), { problem: verdict.problem });
    if (verdict.identity.role !== 'node') throw new Error('no node');
    const peer = { identity: verdict.identity, serial: shown.serial, notAfter: shown.notAfter, address: '127.0.0.1:1' };
    service.admit(peer);
    return peer;
  };
  const l1 = await registrationServer(await own.server('l1', 'a', ['localhost'], options), ({ account, ...rest }) =>
    service.register({ ...rest, aid: account, address: '127.0.0.1', csr: rest.csr.length === 0 ? undefined : rest.csr }, options),
  );
  const l2 = await renewalServer(await own.server('l2', 'a', ['localhost'], options), {
    regenerate: (certificate, csr) => service.renew(admit(certificate), csr, options),
    admit: async (certificate) => {
      admit(certificate);
    },
  });
  const tokens = new TokenService(parts);
  const token = async (replace?: Nid) => (await tokens.create({ aid: aid('acme'), ttlMs: HOUR, replace }, options)).token;
  return { ...parts, authorities, service, view, token, l1, l2, own, registrations: new RegistrationService(parts) };
}

/** A machine with a disk. */
async function machine({ authorities, l1, l2, clock, logger }: Awaited<ReturnType<typeof controlPlane>>) {
  const folder = await tempFolder();
  const rootPath = join(folder, 'public-ca.crt');
  await writeFile(rootPath, authorities.l1.root);
  const now = () => clock.now();
  const flat = { certificate: `${folder}/mtls.crt`, privateKey: `${folder}/mtls.key`, ca: `${folder}/ca.crt` };
  const pairs = new FilePairStore({ folder: join(folder, 'certs'), flat });
  const client = new GrpcRenewalClient({ host: 'localhost', port: l2.port, now });
  const register = (token: string) =>
    registerNode(
      {
        connect: (host) => new GrpcRegistrationClient({ host, port: l1.port, root: { path: rootPath }, now }),
        host: new FakeHostFacts(),
        keys,
        pairs,
        clock,
      },
      { server: 'localhost', account: 'acme', token },
      options,
    );
  const renewed = Promise.withResolvers<string>();
  const part = new RenewalSubsystem({
    pairs,
    client,
    keys,
    clock,
    logger,
    random: () => 0.5,
    linked: async () => {},
    fingerprintOf: rootFingerprint,
    onRenewed: ({ serial }) => renewed.resolve(serial),
  });
  onTestFinished(() => part.stop());
  return { pairs, client, register, part, renewed: renewed.promise };
}

describe('a node and its control plane, over TLS', () => {
  test('it registers, is let in, renews, and its old certificate is retired', { timeout: 60_000 }, async () => {
    const plane = await controlPlane(-61 * DAY);
    const { pairs, client, register, part, renewed } = await machine(plane);
    const { pair } = await register(await plane.token());
    await client.tryPair(pair, options);
    plane.clock.offset = 0;
    await part.start();
    const serial = await renewed;
    expect(serial).not.toBe(pair.serial);
    const { current } = await pairs.load(options);
    expect(current?.serial).toBe(serial);
    await plane.service.settled();
    await client.tryPair(pair, options);
    plane.clock.offset = 6 * 60_000;
    await expect(client.tryPair(pair, options)).rejects.toMatchObject({
      code: 'certificate.refused',
      facts: { problem: expect.stringContaining('a newer certificate of this node is in use') },
    });
    if (current !== undefined) await client.tryPair(current, options);
  });

  test('a token is good for one machine', async () => {
    const plane = await controlPlane();
    const [first, second] = [await machine(plane), await machine(plane)];
    const text = await plane.token();
    await first.register(text);
    await expect(second.register(text)).rejects.toMatchObject({
      code: 'certificate.token_refused',
      facts: { problem: expect.stringMatching(/refused: the token is wrong, has expired, or was used$/) },
    });
    expect(await second.pairs.load(options)).toEqual({ current: undefined, staged: undefined });
  });

  test('a node that another one has taken the place of is not let in any more', async () => {
    const plane = await controlPlane();
    const [first, second] = [await machine(plane), await machine(plane)];
    const before = await first.register(await plane.token());
    const after = await second.register(await plane.token(nid(before.nid)));
    expect(after.nid).toBe(before.nid);
    await second.client.tryPair(after.pair, options);
    await expect(first.client.tryPair(before.pair, options)).rejects.toMatchObject({
      facts: { problem: expect.stringContaining('the node has registered again') },
    });
  });

  test.each<{ name: string; spoil: (plane: Awaited<ReturnType<typeof controlPlane>>, id: string) => unknown; problem: RegExp }>([
    {
      name: 'expired by the clock of the server',
      spoil: ({ clock }) => {
        clock.offset = 91 * DAY;
      },
      problem: /of node n-\w+ expired \d+ h ago; it is valid from \S+Z to \S+Z, and the server's clock says \S+Z/,
    },
    {
      name: 'not valid yet by the clock of the server',
      spoil: ({ clock }) => {
        clock.offset = -2 * HOUR;
      },
      problem: /is not valid yet, for another 1\d\d min; it is valid from \S+Z to \S+Z, and the server's clock says \S+Z/,
    },
    {
      name: 'revoked',
      spoil: ({ registrations }, id) => registrations.revoke({ of: 'node', id }, 'it was stolen', options),
      problem: /was revoked: it was stolen; it is valid from \S+Z to \S+Z, and the server's clock says \S+Z/,
    },
  ])('a certificate that is $name is named so', async ({ spoil, problem }) => {
    const plane = await controlPlane();
    const { client, register } = await machine(plane);
    const { nid: id, pair } = await register(await plane.token());
    await spoil(plane, id);
    await expect(client.tryPair(pair, options)).rejects.toMatchObject({
      code: 'certificate.refused',
      facts: { problem: expect.stringMatching(problem) },
    });
  });

  test('F2: certificates of servers and admins are no nodes', async () => {
    const { own, authorities, view } = await controlPlane();
    const shown = async (pair: { readonly certificate: string }, root: string) => {
      const presented = readPresented(new X509Certificate(pair.certificate).raw, root);
      return judgeCertificate(presented, 'node', view, Date.now());
    };
    const asServer = await own.server('l2', 'a', ['localhost'], options);
    const asAdmin = await own.admin(aid('acme'), 'alice', 'admin', options);
    expect(await shown(asServer, authorities.l2.root)).toMatchObject({ verdict: 'wrong_role' });
    expect(await shown(asAdmin, authorities.l2.root)).toMatchObject({ verdict: 'wrong_issuer' });
  });

  test('F1: of another control plane is named, though it says the same name', async () => {
    const { authorities, view } = await controlPlane();
    const stranger = await newPair(await newAuthority('Holdfast node root'), node, lasting(-HOUR, DAY));
    const presented = readPresented(new X509Certificate(stranger.certificate).raw, authorities.l2.root);
    expect(judgeCertificate(presented, 'node', view, Date.now())).toMatchObject({
      verdict: 'wrong_issuer',
      problem: expect.stringMatching(/was not issued by the authority that is asked for here; it is valid from \S+Z to \S+Z/),
    });
  });

  test('E16: nothing in the store is a private key', async () => {
    const plane = await controlPlane();
    const { register } = await machine(plane);
    await register(await plane.token());
    expect(plane.store.dump()).not.toContain('PRIVATE KEY');
    expect(JSON.stringify(plane.logger.lines)).not.toContain('PRIVATE KEY');
  });
});
