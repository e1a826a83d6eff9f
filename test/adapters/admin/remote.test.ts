import { randomBytes } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { GrpcAdminClient } from '../../../src/adapters/admin/grpc-admin-client.js';
import { AdminServiceService } from '../../../src/adapters/generated/holdfast/admin/v1/admin.js';
import { CertificateServiceService } from '../../../src/adapters/generated/holdfast/admin/v1/certificates.js';
import { FleetServiceService } from '../../../src/adapters/generated/holdfast/admin/v1/fleet.js';
import { NodeServiceService } from '../../../src/adapters/generated/holdfast/admin/v1/node.js';
import { leastGrades } from '../../../src/domain/admin/roles.js';
import { SERIAL_BYTES } from '../../../src/domain/certificate/names.js';
import type { Pair } from '../../../src/ports/certificate/pair-store.js';
import { eventually } from '../../support/eventually.js';
import { base64, options } from '../../support/fleet-rig.js';
import { RawClient } from '../../support/raw-grpc.js';
import { adminIdentity, remoteAdminRig, serialOfPair } from '../../support/remote-admin-rig.js';
import {
  DAY,
  HOUR,
  lasting,
  MINUTE,
  maker,
  newAuthority,
  newPair,
  node,
  server as serverIdentity,
} from '../certificate/support.js';

const send = { node: 'n1', type: 'GET_NODE_STATUS', json: '', tag: 'a', expiresMs: 0n };
const hello = {
  documents: [
    {
      ...{ file: 'hello.yaml', number: 1, path: '' },
      json: JSON.stringify({
        ...{ apiVersion: 'holdfast/v1', kind: 'Service', metadata: { name: 'hello' } },
        spec: { ports: [{ name: 'http', port: 80 }] },
      }),
    },
  ],
  ...{ source: 'test', prune: false, dryRun: false, requestId: 'r1' },
};
const FLEET = '/holdfast.admin.v1.FleetService';
const ADMIN = '/holdfast.admin.v1.AdminService';

test('G1: every method of the admin API has a role, and every role is of a method', () => {
  const services: readonly ServiceDefinition[] = [
    AdminServiceService,
    FleetServiceService,
    CertificateServiceService,
    NodeServiceService,
  ];
  const methods = services.flatMap((definition) => Object.values(definition).map(({ path }) => path));
  expect(Object.keys(leastGrades).toSorted()).toEqual(methods.toSorted());
});

describe('F3: who is let in', () => {
  test('an admin, by a certificate of the admin authority', async () => {
    const rig = await remoteAdminRig();
    expect((await (await rig.as('viewer')).listNodes(options)).nodes).toMatchObject([{ node: 'n1' }]);
  });

  interface Refused {
    readonly name: string;
    readonly pair: (rig: Awaited<ReturnType<typeof remoteAdminRig>>) => Promise<Pair>;
    readonly code: string;
    readonly problem: RegExp;
  }

  /** The root of the server stays that of the rig: only what is shown differs. */
  const shown = async (rig: Awaited<ReturnType<typeof remoteAdminRig>>, made: Promise<Pair>) => ({
    ...(await made),
    ca: rig.authority.root,
  });

  test.each<Refused>([
    {
      name: 'an admin of another control plane',
      pair: async (rig) => shown(rig, newPair(await newAuthority('admins'), adminIdentity('admin'))),
      code: 'certificate.wrong_issuer',
      problem: /was not issued by the authority that is asked for here; .* this port takes those of admins/,
    },
    {
      name: 'a node',
      pair: async (rig) => shown(rig, newPair(await newAuthority('nodes'), node)),
      code: 'certificate.wrong_issuer',
      problem: /of node n1 was not issued by the authority that is asked for here; .* this port takes those of admins/,
    },
    {
      name: 'a node that the admin authority would have certified',
      pair: (rig) => newPair(rig.authority, node),
      code: 'certificate.wrong_role',
      problem: /of node n1 has the role node; admin is asked for here; .* this port takes those of admins/,
    },
    {
      name: 'a server',
      pair: (rig) => newPair(rig.authority, serverIdentity),
      code: 'certificate.wrong_role',
      problem: /of server a has the role server; admin is asked for here/,
    },
    {
      name: 'one whose time is over',
      pair: (rig) => newPair(rig.authority, adminIdentity('admin'), lasting(-DAY, -2 * HOUR)),
      code: 'certificate.expired',
      problem: /expired 2 h ago; it is valid from \S+Z to \S+Z, and the server's clock says \S+Z/,
    },
    {
      name: 'one whose time is to come',
      pair: (rig) => newPair(rig.authority, adminIdentity('admin'), lasting(2 * HOUR + MINUTE, DAY)),
      code: 'certificate.not_yet_valid',
      problem: /is not valid yet, for another 2 h/,
    },
    {
      name: 'one that was revoked',
      pair: async (rig) => {
        const pair = await rig.pair('admin');
        rig.revocations.revokePair(pair);
        return pair;
      },
      code: 'certificate.revoked',
      problem: /was revoked: it was stolen/,
    },
  ])('$name is told why not', async ({ pair, code, problem }) => {
    const rig = await remoteAdminRig();
    const client = rig.clientWith(await pair(rig));
    await expect(client.listNodes(options)).rejects.toMatchObject({ code, facts: { problem: expect.stringMatching(problem) } });
    await expect(client.send(send, options)).rejects.toMatchObject({ code });
    expect(rig.audit.records).toEqual([]);
    expect(rig.adminLog.dump('warn')).toContain('a call of the admin port was refused');
  });

  test('nobody, before it is known who is revoked', async () => {
    const rig = await remoteAdminRig();
    rig.revocations.isLoaded = false;
    const client = await rig.as('admin');
    await expect(client.listNodes(options)).rejects.toMatchObject({ code: 'store.unavailable' });
  });

  test('whoever shows no certificate is told so', async () => {
    const { server, authority } = await remoteAdminRig();
    const raw = new RawClient(server.port, { ca: authority.root });
    onTestFinished(() => raw.close());
    const { status } = await raw.unary(`${ADMIN}/Status`, Buffer.alloc(0));
    expect(status).toMatchObject({ code: 16, message: expect.stringContaining('no certificate was shown') });
  });

  test('each call is judged anew: a connection of before is no way around a revocation', async () => {
    const rig = await remoteAdminRig();
    const pair = await rig.pair('admin');
    const client = rig.clientWith(pair);
    await client.listNodes(options);
    rig.revocations.revokePair(pair);
    await expect(client.listNodes(options)).rejects.toMatchObject({ code: 'certificate.revoked' });
  });

  test('another clock here is named', async () => {
    const rig = await remoteAdminRig();
    const client = await rig.as('admin');
    rig.serverClock.ahead = 400 * DAY;
    await expect(client.listNodes(options)).rejects.toMatchObject({
      code: 'certificate.expired',
      facts: {
        problem: expect.stringMatching(/the server's clock says 20\d\d-/),
        remedy: expect.stringContaining('cert create'),
      },
    });
  });
});

describe('the client takes a server only', () => {
  test('under its own root', async () => {
    const rig = await remoteAdminRig();
    const client = rig.clientWith({ ...(await rig.pair('admin')), ca: (await newAuthority('others')).root });
    await expect(client.status(options)).rejects.toMatchObject({
      code: 'certificate.untrusted',
      facts: { problem: expect.stringContaining('its root is not ours') },
    });
  });

  test('under the name by which it was called', async () => {
    const rig = await remoteAdminRig({}, async (authority) => {
      const { key, privateKey } = await maker.makeKey(options);
      const serial = 'ab'.repeat(SERIAL_BYTES);
      const times = lasting(-DAY, DAY);
      const certificate = await authority.issue(
        { identity: serverIdentity, key, serial, hosts: ['other.example'], ...times },
        options,
      );
      return { certificate, privateKey, ca: authority.root };
    });
    await expect((await rig.as('admin')).status(options)).rejects.toMatchObject({
      code: 'certificate.untrusted',
      facts: { problem: expect.stringContaining('it is not for this name') },
    });
  });

  test('with a certificate of a server: that of an admin who is called as the host is none', async () => {
    const rig = await remoteAdminRig({}, (authority) => newPair(authority, adminIdentity('admin', 'localhost')));
    const client = rig.clientWith(await rig.pair('admin'), 'localhost');
    await expect(client.status(options)).rejects.toMatchObject({ code: 'certificate.untrusted' });
  });

  test('that is there', async () => {
    const rig = await remoteAdminRig();
    const client = await rig.as('admin');
    await rig.server.stop();
    await expect(client.status(options)).rejects.toMatchObject({
      code: 'admin.unreachable',
      facts: { problem: expect.stringContaining('nothing listens at 127.0.0.1') },
    });
  });
});

describe('G1: roles', () => {
  type Call = (client: GrpcAdminClient) => Promise<unknown>;
  const drained = async (messages: AsyncIterable<unknown>) => {
    for await (const _ of messages) return;
  };
  const calls: readonly (readonly [string, string, Call])[] = [
    ['Apply', 'operator', (client) => client.apply(hello, options)],
    ['Delete', 'operator', (client) => client.delete({ refs: [], dryRun: true, requestId: '', ignoreNotFound: true }, options)],
    ['Send', 'operator', (client) => client.send(send, options)],
    ['CancelInstruction', 'operator', (client) => client.cancelInstruction({ node: 'n1', tag: 'a' }, options)],
    ['CordonNode', 'operator', (client) => client.cordonNode({ node: 'n1', cordoned: true }, options)],
    ['RemoveNode', 'admin', (client) => client.removeNode({ node: 'n1' }, options)],
    ['RevokeCertificate', 'admin', (client) => client.revokeCertificate({ serial: 'ff', reason: '' }, options)],
    ['CreateToken', 'admin', (client) => client.createToken({ account: '', ttlMs: 1_000n, replace: '' }, options)],
    ['RevokeToken', 'admin', (client) => client.revokeToken({ id: 't1' }, options)],
    ['Backup', 'admin', (client) => drained(client.backup({ withKey: true }, options))],
    [
      'CreateAdminCertificate',
      'admin',
      (client) => client.createAdminCertificate({ name: 'x', role: 'admin', ttlMs: 0n, csr: Buffer.alloc(0) }, options),
    ],
  ];

  test.each(calls)('%s is for the role %s', async (method, least, call) => {
    const rig = await remoteAdminRig();
    const [viewer, operator] = [await rig.as('viewer'), await rig.as('operator')];
    await expect(call(viewer)).rejects.toMatchObject({
      code: 'admin.not_allowed',
      facts: { problem: `admin:viewer has the role viewer; this is for the role ${least}` },
    });
    expect(rig.audit.dump()).toContain(`decision denied: role, ${least} is needed admin/`);
    expect(rig.audit.dump()).toContain(`/${method} - admin:viewer:viewer:`);
    const answer = await call(operator).then(
      () => 'done',
      (error: { code: string }) => error.code,
    );
    expect(answer === 'admin.not_allowed').toBe(least === 'admin');
  });

  test('an operator sends and cancels what only reads or converges, and no script that calls itself repeatable', async () => {
    const rig = await remoteAdminRig();
    const [operator, admin] = [await rig.as('operator'), await rig.as('admin')];
    expect((await operator.send(send, options)).instruction).toMatchObject({ sentBy: 'admin:operator' });
    const script = { ...send, type: 'RUN_REMOTE_SCRIPT', json: '{"script":"x","repeatable":true}', tag: 'b' };
    await expect(operator.send(script, options)).rejects.toMatchObject({ code: 'admin.not_allowed' });
    await admin.send(script, options);
    await expect(operator.cancelInstruction({ node: 'n1', tag: 'b' }, options)).rejects.toMatchObject({
      code: 'admin.not_allowed',
    });
    await operator.cancelInstruction({ node: 'n1', tag: 'a' }, options);
    await admin.cancelInstruction({ node: 'n1', tag: 'b' }, options);
    expect((await rig.instructions.list({}, options)).map(({ tag, state }) => `${tag} ${state}`)).toEqual([
      'a cancelled',
      'b cancelled',
    ]);
  });

  test('a viewer sees what became of an instruction, and not what the node said', async () => {
    const rig = await remoteAdminRig();
    await rig.send({ tag: undefined });
    const { say } = await rig.connect();
    const [{ tag = '' } = {}] = await rig.instructions.list({}, options);
    await say('NODE_STATUS', tag, base64('{"password":"x"}'));
    const [viewer, operator] = [await rig.as('viewer'), await rig.as('operator')];
    const withheld = await viewer.getInstruction({ node: 'n1', tag }, options);
    expect(withheld).toMatchObject({ instruction: { replyType: 'NODE_STATUS' }, replyJsonB64: '', replyWithheld: true });
    expect(await operator.getInstruction({ node: 'n1', tag }, options)).toMatchObject({
      ...{ replyJsonB64: base64('{"password":"x"}'), replyWithheld: false },
    });
    const shown = await rig.remoteCli(await rig.pair('viewer'), ['results', 'n1', tag]);
    expect(shown).toMatchObject({ code: 0, err: 'what it says is not for the role of this certificate\n' });
    expect(shown.out).not.toContain('password');
  });

  test('a method that there is not is said to be that, to those who are let in', async () => {
    const rig = await remoteAdminRig();
    const { certificate: cert, privateKey: key, ca } = await rig.pair('admin');
    const raw = new RawClient(rig.server.port, { ca, cert, key });
    onTestFinished(() => raw.close());
    expect((await raw.unary(`${FLEET}/Nothing`, Buffer.alloc(0))).status).toMatchObject({ code: 12 });
    // Of an agent, and not served here.
    expect((await raw.unary('/holdfast.admin.v1.NodeService/Resync', Buffer.alloc(0))).status).toMatchObject({ code: 12 });
  });
});

describe('G1, H1: the audit log', () => {
  test('has who, by which certificate, and from where', async () => {
    const rig = await remoteAdminRig();
    const pair = await rig.pair('operator', 'olga');
    const client = rig.clientWith(pair);
    await client.cordonNode({ node: 'n1', cordoned: true }, options);
    await client.apply(hello, options);
    await client.apply({ ...hello, dryRun: true, requestId: 'r2' }, options);
    await client.delete(
      { refs: [{ kind: 'Service', namespace: 'default', name: 'hello' }], dryRun: false, requestId: 'r3', ignoreNotFound: false },
      options,
    );
    const who = new RegExp(`^admin:olga:operator:${serialOfPair(pair)}@127\\.0\\.0\\.1:\\d+$`);
    expect(rig.audit.records.map(({ type, tag, line, result }) => `${type} ${tag} ${line} ${result}`)).toEqual([
      'admin.cordon n1 decision allowed',
      'admin.cordon n1 outcome done',
      'admin.apply test decision allowed',
      'admin.apply test outcome done',
      'admin.delete Service/default/hello decision allowed',
      'admin.delete Service/default/hello outcome done',
    ]);
    for (const record of rig.audit.records) {
      expect(record).toMatchObject({ who: expect.stringMatching(who), rule: 'role operator' });
    }
  });

  test('that cannot be written lets nothing happen', async () => {
    const rig = await remoteAdminRig();
    rig.audit.fill();
    const client = await rig.as('operator');
    await expect(client.apply(hello, options)).rejects.toMatchObject({ code: 'audit.not_written' });
    const { objectsJson } = await client.get({ selector: undefined }, options);
    expect(objectsJson).toEqual([]);
  });

  test('is not filled by somebody who may nothing', async () => {
    const rig = await remoteAdminRig();
    const viewer = await rig.as('viewer');
    const denied = Array.from({ length: 100 }, () => viewer.cordonNode({ node: 'n1', cordoned: true }, options));
    expect((await Promise.allSettled(denied)).every(({ status }) => status === 'rejected')).toBe(true);
    await eventually(() => rig.audit.records.length).toBeGreaterThanOrEqual(20);
    expect(rig.audit.records.length).toBeLessThan(60);
  });
});

describe('F4: what is open when a certificate is revoked', () => {
  test('ends within a second, the others go on', async () => {
    const rig = await remoteAdminRig();
    const stolen = await rig.pair('viewer');
    const watch = rig.clientWith(stolen).watch({ selector: undefined }, options)[Symbol.asyncIterator]();
    const first = watch.next();
    const other = (await rig.as('operator')).watch({ selector: undefined }, options)[Symbol.asyncIterator]();
    const otherFirst = other.next();
    await eventually(() => rig.server.counts().calls).toBe(2);
    const begun = performance.now();
    rig.revocations.revokePair(stolen);
    await expect(first).rejects.toMatchObject({
      code: 'certificate.refused',
      facts: { problem: expect.stringContaining('revoked: it was stolen') },
    });
    expect(performance.now() - begun).toBeLessThan(1_000);
    await (await rig.as('operator', 'else')).apply(hello, options);
    expect((await otherFirst).value).toMatchObject({ objectJson: expect.stringContaining('hello') });
    await eventually(() => rig.server.counts().calls).toBe(1);
    await other.return?.(undefined);
  });

  test('and when its time is over', async () => {
    const rig = await remoteAdminRig();
    const brief = await newPair(rig.authority, adminIdentity('viewer'), lasting(-DAY, 2_000));
    const watch = rig.clientWith(brief).watch({ selector: undefined }, options)[Symbol.asyncIterator]();
    await expect(watch.next()).rejects.toMatchObject({ facts: { problem: expect.stringContaining('EXPIRED') } });
  });
});

describe('I2: strangers', () => {
  const tcp = (port: number) => {
    const socket = connectTcp({ host: '127.0.0.1', port });
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };

  test('a thousand connections of garbage leave it serving', { timeout: 60_000 }, async () => {
    const rig = await remoteAdminRig();
    const { port } = rig.server;
    const garbage = Array.from({ length: 1_000 }, (_, index) => {
      const socket = tcp(port);
      socket.write(Buffer.alloc(64 + (index % 1_000), index % 251));
      return socket;
    });
    expect((await (await rig.as('viewer')).listNodes(options)).nodes).toHaveLength(1);
    await eventually(() => rig.server.counts().connections?.failedHandshakes).toBeGreaterThan(900);
    for (const socket of garbage) socket.destroy();
    expect(rig.audit.records).toEqual([]);
  });

  test('a thousand that say nothing delay a call, and are closed', { timeout: 60_000 }, async () => {
    const rig = await remoteAdminRig();
    const silent = Array.from({ length: 1_000 }, () => tcp(rig.server.port));
    const begun = performance.now();
    expect((await (await rig.as('viewer')).listNodes(options)).nodes).toHaveLength(1);
    // 200 at once and 200 a second: 4 s for a thousand, and five times that on a busy machine.
    expect(performance.now() - begun).toBeLessThan(20_000);
    for (const socket of silent) socket.destroy();
  });

  test('a handshake that does not end is ended', async () => {
    const rig = await remoteAdminRig({ limits: { firstCallMs: 1_000 } });
    const endless = tcp(rig.server.port);
    // A record of TLS that promises 16 KiB of handshake, a byte at a time.
    endless.write(Buffer.from([0x16, 0x03, 0x01, 0x40, 0x00]));
    const drip = setInterval(() => endless.write(Buffer.of(1)), 20);
    onTestFinished(() => clearInterval(drip));
    const secured = connectTls({ host: '127.0.0.1', port: rig.server.port, ca: rig.authority.root, ALPNProtocols: ['h2'] });
    secured.on('error', () => {});
    await Promise.all([endless, secured].map((socket) => new Promise((resolve) => socket.once('close', resolve).resume())));
    await eventually(() => rig.server.counts().connections).toMatchObject({ timedOut: 2, unfinished: 0 });
    expect((await (await rig.as('viewer')).listNodes(options)).nodes).toHaveLength(1);
  });

  test('what is no message, at every method and with a good certificate, is answered', {
    timeout: 60_000,
  }, async () => {
    const rig = await remoteAdminRig();
    const { certificate: cert, privateKey: key, ca } = await rig.pair('admin');
    const raw = new RawClient(rig.server.port, { ca, cert, key });
    onTestFinished(() => raw.close());
    const bodies = [
      Buffer.of(0xff),
      Buffer.alloc(64, 0xff),
      Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
      randomBytes(1_000),
    ];
    const methods = Object.keys(leastGrades).filter((path) => !/Watch|Events|Backup/.test(path));
    for (const method of methods) {
      for (const body of bodies) expect((await raw.unary(method, body)).status.code, method).toBeGreaterThanOrEqual(0);
    }
    expect((await rig.instructions.list({}, options)).length).toBe(0);
    expect((await (await rig.as('viewer')).listNodes(options)).nodes).toHaveLength(1);
  });

  test('what is no HTTP/2, with a good certificate, costs that connection', async () => {
    const rig = await remoteAdminRig({ limits: { firstCallMs: 1_000 } });
    const { certificate: cert, privateKey: key, ca } = await rig.pair('admin');
    const gone = Array.from({ length: 50 }, (_, index) => {
      const socket = connectTls({ host: '127.0.0.1', port: rig.server.port, ca, cert, key, ALPNProtocols: ['h2'] });
      socket.on('error', () => {});
      // Half of them begin as HTTP/2 does.
      const preface = index % 2 === 0 ? Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') : Buffer.alloc(0);
      socket.write(Buffer.concat([preface, randomBytes(10_000)]));
      return new Promise((resolve) => socket.once('close', resolve).resume());
    });
    await Promise.all(gone);
    expect((await (await rig.as('viewer')).listNodes(options)).nodes).toHaveLength(1);
  });

  test('whoever is refused has no other call on the connection a second later', async () => {
    const rig = await remoteAdminRig();
    const { certificate: cert, privateKey: key } = await newPair(await newAuthority('others'), adminIdentity('admin'));
    const raw = new RawClient(rig.server.port, { ca: rig.authority.root, cert, key });
    onTestFinished(() => raw.close());
    const closed = new Promise((resolve) => raw.session.once('close', resolve));
    raw.session.on('error', () => {});
    expect((await raw.unary(`${ADMIN}/Status`, Buffer.alloc(0))).status).toMatchObject({ code: 16 });
    await closed;
  });

  test('their tries are in the log, and do not fill it', async () => {
    const rig = await remoteAdminRig();
    const stranger = rig.clientWith({
      ...(await newPair(await newAuthority('x'), adminIdentity('admin'))),
      ca: rig.authority.root,
    });
    await Promise.allSettled(Array.from({ length: 200 }, () => stranger.listNodes(options)));
    const lines = rig.adminLog
      .dump('warn')
      .split('\n')
      .filter((line) => line.includes('was refused'));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(40);
  });
});
