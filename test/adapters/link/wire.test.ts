import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { GrpcRenewalClient } from '../../../src/adapters/certificate/grpc-renewal-client.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcEnrolmentServer } from '../../../src/adapters/link/grpc-enrolment-server.js';
import { GrpcNodeServer } from '../../../src/adapters/link/grpc-node-server.js';
import { GrpcNodewardCalls } from '../../../src/adapters/link/grpc-nodeward-calls.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { AgentError, type ErrorCode } from '../../../src/domain/kernel/errors.js';
import { heartbeatAnswer } from '../../../src/domain/link/heartbeat.js';
import { epoch, HEARTBEAT_TYPE } from '../../../src/domain/link/model.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { eventually } from '../../support/eventually.js';
import {
  FakeRevocations,
  facts,
  judgePeer,
  nodePair,
  RecordingCalls,
  RecordingEnrolment,
  RecordingStreams,
  serverPair,
} from '../../support/link-rig.js';
import { L1, L2, RawClient, RawServer } from '../../support/raw-grpc.js';
import { encode, RawMessage } from '../../support/raw-protobuf.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

/** Nothing here knows the generated code: paths, numbers of fields and spellings are those of nodeward.md, written out by hand. */
const pki = new ThrowawayPki();
const { ca, certificate: cert, privateKey: key } = nodePair(pki);
const server = serverPair(pki);
const clock = new SystemClock();
const signal = AbortSignal.timeout(120_000);
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(() => pki.remove());

const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
/** `FromNodeAgent`, `ToNodeAgent`: jsonB64 = 1, type = 5, tag = 10. */
const envelope = (type: string, tag: string, jsonB64: string) => encode([1, jsonB64], [5, type], [10, tag]);
const opened = (bytes: Buffer) => {
  const message = new RawMessage(bytes);
  return { type: message.text(5), tag: message.text(10), jsonB64: message.text(1), numbers: message.numbers };
};

async function controlPlane() {
  const [streams, calls, enrolment, logger] = [
    new RecordingStreams(),
    new RecordingCalls(),
    new RecordingEnrolment(),
    new FakeLogger(),
  ];
  const revocations = new FakeRevocations();
  const listen = { host: '127.0.0.1', port: 0 };
  const l2 = new GrpcNodeServer({ listen, pair: () => server, judgePeer, streams, calls, enrolment, revocations, clock, logger });
  const l1 = new GrpcEnrolmentServer({ listen, pair: () => ({ ...server, clientRoots: [] }), enrolment, logger });
  await Promise.all([l1.start(), l2.start()]);
  closers.push(
    () => l2.stop(),
    () => l1.stop(),
  );
  return { streams, calls, enrolment, l1, l2 };
}

function client(port: number, tls: ConstructorParameters<typeof RawClient>[1] = { ca, cert, key }): RawClient {
  const raw = new RawClient(port, tls);
  closers.push(() => raw.close());
  return raw;
}

describe('an existing agent against our server', () => {
  /** machineId = 25, aid = 30, token = 35, os = 40, hostCidrs = 45, csr = 50; nid = 50, privateKey = 60, publicKey = 65, caCert = 70. */
  const registration = (csr?: Buffer) =>
    encode(
      [25, 'machine-1'],
      [30, 'acme'],
      [35, 'id.secret'],
      [40, 'debian-13'],
      [45, '10.0.0.0/24'],
      [45, '192.168.1.0/24'],
      ...(csr === undefined ? [] : ([[50, csr]] as const)),
    );

  test('registers without a CSR: the server makes the key', async () => {
    const { l1, enrolment } = await controlPlane();
    const { status, response } = await client(l1.port, { ca }).unary(`${L1}/Register`, registration());
    expect(status).toMatchObject({ code: 0 });
    const answer = new RawMessage(response ?? Buffer.alloc(0));
    expect([50, 60, 65, 70].map((number) => answer.text(number))).toEqual(['n1', 'a key', 'a certificate', 'a root']);
    expect(enrolment.registered).toEqual([
      {
        machineId: 'machine-1',
        aid: 'acme',
        token: 'id.secret',
        os: 'debian-13',
        hostCidrs: ['10.0.0.0/24', '192.168.1.0/24'],
        csr: undefined,
        address: '127.0.0.1',
      },
    ]);
  });

  test('registers with a CSR: the answer holds no key', async () => {
    const { l1, enrolment } = await controlPlane();
    const { response } = await client(l1.port, { ca }).unary(`${L1}/Register`, registration(Buffer.from([0x30, 0])));
    expect(new RawMessage(response ?? Buffer.alloc(0)).numbers).toEqual([50, 65, 70]);
    expect(enrolment.registered[0]?.csr).toEqual(Buffer.from([0x30, 0]));
  });

  test.each<{ code: ErrorCode; status: number }>([
    { code: 'certificate.token_refused', status: 7 },
    { code: 'certificate.unknown_account', status: 5 },
    { code: 'certificate.csr_invalid', status: 3 },
    { code: 'certificate.too_many', status: 8 },
    { code: 'store.unavailable', status: 14 },
  ])('$code is gRPC status $status', async ({ code, status }) => {
    const { l1, enrolment } = await controlPlane();
    enrolment.refuses = new AgentError(code, { problem: 'why' });
    const answer = await client(l1.port, { ca }).unary(`${L1}/Register`, registration());
    expect([answer.status.code, answer.status.message]).toEqual([status, 'why']);
  });

  test('keeps its stream: heartbeat, raw text ERROR, NO_CONTENT, and an instruction', async () => {
    const { l2, streams } = await controlPlane();
    streams.answer = ({ type, tag }, stream) => {
      if (type === HEARTBEAT_TYPE) void stream.send(heartbeatAnswer({ isHealthy: true, message: 'ok' }, tag));
    };
    const call = client(l2.port).call(`${L2}/NodeAgentStream`).read();
    expect(await call.headers).toMatchObject({
      ':status': 200,
      'content-type': expect.stringMatching(/^application\/grpc/),
      'holdfast-fleet': 'fleet-1',
      'holdfast-server': 'server-1',
      'holdfast-epoch': '3',
      'holdfast-caps': 'journal,redeliver,result-ack',
      'holdfast-spread-ms': '12000',
    });
    const beat = { externalIpAddress: '10.0.0.1', isCp: false, isWorker: true, status: 'ready', version: '1' };
    call.send(envelope('NodeAgentHeartbeatToServer', 'beat-1', b64(beat)));
    const answer = opened(await call.next());
    expect(answer).toMatchObject({ tag: 'beat-1', numbers: [1, 5, 10] });
    expect(JSON.parse(Buffer.from(answer.jsonB64, 'base64').toString())).toEqual({ isHealthy: true, message: 'ok' });

    const { stream, received } = streams.newest;
    expect(stream.agent).toBeUndefined();
    await stream.send({ type: 'DELETE_CR', tag: 'i-1', jsonB64: b64({ type: 'apps', id: 'a' }) });
    expect(opened(await call.next())).toEqual({
      type: 'DELETE_CR',
      tag: 'i-1',
      jsonB64: b64({ type: 'apps', id: 'a' }),
      numbers: [1, 5, 10],
    });
    call.send(envelope('ERROR', 'i-1', 'exit status 1: läuft nicht'));
    call.send(envelope('NO_CONTENT', 'i-2', 'e30='));
    await eventually(() => received.length).toBe(3);
    expect(received.slice(1)).toEqual([
      { type: 'ERROR', tag: 'i-1', jsonB64: 'exit status 1: läuft nicht' },
      { type: 'NO_CONTENT', tag: 'i-2', jsonB64: 'e30=' },
    ]);
    call.stream.end();
    expect(await call.status).toMatchObject({ code: 0 });
    await eventually(() => streams.newest.closed).toBe(1);
  });

  test('the additions of a message have these numbers, and are sent only where they are said', async () => {
    const { l2, streams } = await controlPlane();
    const headers = {
      'holdfast-instance': 'i',
      'holdfast-session': '2',
      'holdfast-boot': 'b',
      'holdfast-hw': 'h',
      'holdfast-journal': 'j:5',
    };
    const call = client(l2.port)
      .call(`${L2}/NodeAgentStream`, { ...headers, 'holdfast-caps': 'journal' })
      .read();
    await call.headers;
    const { stream } = streams.newest;
    expect(stream.agent).toEqual({
      instance: 'i',
      session: 2,
      boot: 'b',
      hardware: 'h',
      journal: { id: 'j', counter: 5n },
      capabilities: new Set(['journal']),
    });
    await stream.send({ type: 'X', tag: 't', jsonB64: '', epoch: epoch(7n), expiresInMs: 60_000 });
    const message = new RawMessage(await call.next());
    expect([message.numbers, message.number(20), message.number(25)]).toEqual([[5, 10, 20, 25], 7n, 60_000n]);
  });

  test('calls once on connections of their own', async () => {
    const { l2, calls, enrolment } = await controlPlane();
    const unary = async (method: string, request: Buffer) => {
      const { status, response } = await client(l2.port).unary(`${L2}/${method}`, request);
      expect([method, status.code]).toEqual([method, 0]);
      return new RawMessage(response ?? Buffer.alloc(0));
    };
    // VpnPeer: pubKey = 10, endpointIp = 15, ip = 20, extraAllowedIps = 25.
    const peer = [
      [10, 'own'],
      [15, '10.0.0.1'],
      [20, '10.1.0.1'],
      [25, 'a'],
      [25, 'b'],
    ] as const;
    const synced = await unary('ManualSync', encode([10, peer], [25, true]));
    expect(synced.text(10)).toBe('10.1.0.1/16');
    const [other] = synced.messages(5);
    expect([other?.text(10), other?.text(15), other?.text(20), other?.texts(25)]).toEqual([
      'key',
      '',
      '10.1.0.2',
      ['10.9.0.0/16'],
    ]);
    const [node] = (await unary('GetControlPlaneNodes', encode())).messages(5);
    expect([node?.text(1), node?.text(5)]).toEqual(['10.1.0.1', 'https://10.1.0.1:6443']);
    await unary('UpdateStatus', encode([5, 'READY']));
    await unary('AddNodelog', encode([5, 't'], [10, 2], [15, 'm'], [20, 'c'], [25, 'why'], [30, 'do'], [35, 'url']));
    await unary('UpdateNodeInstallationStatus', encode([10, 3], [15, 0], [20, '']));
    const renewed = await unary('RegenerateCertificate', encode());
    expect([5, 10, 15].map((number) => renewed.text(number))).toEqual(['a key', 'a certificate', 'a root']);
    expect((await unary('RegenerateCertificate', encode([5, Buffer.from([0x30])]))).numbers).toEqual([10, 15]);
    expect(enrolment.renewed).toEqual([undefined, Buffer.from([0x30])]);
    expect(calls.seen).toEqual([
      'n1 manualSync {"self":{"pubKey":"own","endpointIp":"10.0.0.1","ip":"10.1.0.1","extraAllowedIps":["a","b"]},"nodeIsReady":true}',
      'n1 controlPlaneNodes {}',
      'n1 updateStatus {"status":"READY"}',
      'n1 addNodelog {"severity":"warning","type":"t","message":"m","code":"c","cause":"why","remedy":"do","docsUrl":"url"}',
      'n1 installProgress {"stepCompleted":3,"errorAtStep":0,"errorMessage":""}',
    ]);
  });

  test('F5: a renewal says which machine asks; an older agent does not', async () => {
    const { l2, enrolment } = await controlPlane();
    const caller = { instance: 'i1', boot: 'b1', hardware: 'h1' };
    const given = { host: 'localhost', port: l2.port, now: () => Date.now() };
    const pair = { ca, certificate: cert, privateKey: key };
    await new GrpcRenewalClient({ ...given, caller }).regenerate(pair, Buffer.from([0x30]), { signal });
    expect(enrolment.caller).toEqual(caller);
    await new GrpcRenewalClient(given).regenerate(pair, Buffer.from([0x30]), { signal });
    expect(enrolment.caller).toBeUndefined();
  });

  test.each([
    ['GetInstallCommands', 9, 'no install plan is configured on this control plane'],
    ['GetInstallVpnCommands', 9, 'no install plan is configured on this control plane'],
    ['GetNodeRegistrationToken', 9, 'tokens are made with `holdfast token create`'],
    ['Communicate', 12, 'this control plane serves node agents only'],
    ['ClusterAgentStream', 12, 'this control plane serves node agents only'],
    ['ServerAgentStream', 12, 'this control plane serves node agents only'],
    ['GetClusterAgentCredentials', 12, 'this control plane serves node agents only'],
  ])('%s is status %i', async (method, code, message) => {
    const { l2 } = await controlPlane();
    const { status } = await client(l2.port).unary(`${L2}/${method}`, encode());
    expect([status.code, status.message]).toEqual([code, message]);
  });

  test('ServerRegister is unimplemented', async () => {
    const { l1 } = await controlPlane();
    const { status } = await client(l1.port, { ca }).unary(`${L1}/ServerRegister`, encode());
    expect([status.code, status.message]).toEqual([12, 'this control plane registers nodes only']);
  });

  test('no method is entered without a certificate', async () => {
    const { l2, streams, calls } = await controlPlane();
    for (const method of ['ManualSync', 'NodeAgentStream', 'GetControlPlaneNodes']) {
      const { status } = await client(l2.port, { ca }).unary(`${L2}/${method}`, encode());
      expect([status.code, status.message]).toEqual([16, expect.stringContaining('no certificate was shown')]);
    }
    expect([streams.seen, calls.seen]).toEqual([[], []]);
  });

  test('15 MiB in one message are taken, 17 end the call and not the server', async () => {
    const { l2, streams } = await controlPlane();
    const raw = client(l2.port);
    const call = raw.call(`${L2}/NodeAgentStream`).read();
    await call.headers;
    call.send(envelope('RUN_REMOTE_SCRIPT_RESPONSE', 'big', 'A'.repeat(15 * 1024 * 1024)));
    await expect.poll(() => streams.newest.received.at(-1)?.jsonB64.length, { timeout: 10_000 }).toBe(15 * 1024 * 1024);
    call.send(envelope('RUN_REMOTE_SCRIPT_RESPONSE', 'huge', 'A'.repeat(17 * 1024 * 1024)));
    expect(await call.status).toMatchObject({ code: 8 });
    const again = raw.call(`${L2}/NodeAgentStream`).read();
    expect((await again.headers)['holdfast-epoch']).toBe('3');
  });
});

describe('our agent against an existing server', () => {
  /** Answers heartbeats, sends no headers of ours. */
  async function olderServer(onMessage: ConstructorParameters<typeof RawServer>[1]) {
    const raw = new RawServer({ ca, cert: server.certificate, key: server.privateKey }, onMessage);
    const address = { host: 'localhost', port: await raw.listen() };
    const connections = new LinkConnections({ readPair: async () => ({ ca, certificate: cert, privateKey: key }), clock });
    const link = new GrpcControlLink({ connections, clock });
    closers.push(
      () => raw.close(),
      () => link.close(),
    );
    return { raw, address, link, connections };
  }

  test('works without headers; what it sends is base64 in the envelope, its facts are metadata', async () => {
    const seen: ReturnType<typeof opened>[] = [];
    const { raw, address, link } = await olderServer((bytes, call) => {
      const message = opened(bytes);
      seen.push(message);
      call.send(envelope(HEARTBEAT_TYPE, message.tag, b64({ isHealthy: true, message: '' })));
    });
    const stream = await link.open(address, facts, { signal });
    await stream.send({ type: HEARTBEAT_TYPE, tag: 'b-1', jsonB64: b64({ isCp: false }) }, { signal });
    expect(await stream.server).toBeUndefined();
    for await (const message of stream.messages) {
      expect(message).toEqual({ type: HEARTBEAT_TYPE, tag: 'b-1', jsonB64: b64({ isHealthy: true, message: '' }) });
      break;
    }
    expect(seen).toEqual([{ type: HEARTBEAT_TYPE, tag: 'b-1', jsonB64: b64({ isCp: false }), numbers: [1, 5, 10] }]);
    const { headers } = raw.served[0] ?? { headers: {} };
    expect(headers).toMatchObject({
      ':path': `${L2}/NodeAgentStream`,
      ':authority': `localhost:${address.port}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      'holdfast-instance': 'instance-1',
      'holdfast-session': '1',
      'holdfast-boot': 'boot-1',
      'holdfast-hw': 'hw-1',
      'holdfast-journal': 'journal-1:7',
      'holdfast-caps': 'journal,result-ack,keepalive',
    });
    expect(stream.clockSkewMs).toBeTypeOf('number');
  });

  test('C6: it is never pinged, also not on its second connection; one that announces it is', { timeout: 40_000 }, async () => {
    const older = await olderServer((bytes, call) => call.send(bytes));
    const announcing = await olderServer((_, { stream }) => {
      const holdfast = { 'holdfast-fleet': 'f', 'holdfast-server': 's', 'holdfast-epoch': '1', 'holdfast-caps': 'keepalive' };
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...holdfast });
    });
    for (const { address, link } of [older, announcing]) {
      for (const session of [1, 2]) {
        const stream = await link.open(address, { ...facts, session }, { signal });
        await stream.send({ type: HEARTBEAT_TYPE, tag: `b-${session}`, jsonB64: '' }, { signal });
        await stream.server;
        link.reloadCertificate();
      }
    }
    // Pings come 10 s apart.
    await clock.sleep(11_500, { signal });
    expect([older.raw.pings, announcing.raw.pings]).toEqual([0, 1]);
  });

  test('its calls have these numbers', async () => {
    const bodies: string[] = [];
    const { raw, address, connections } = await olderServer((bytes, call) => {
      const path = String(call.headers[':path']);
      const message = new RawMessage(bytes);
      bodies.push(`${path.slice(L2.length + 1)} ${message.numbers}`);
      const answers: Readonly<Record<string, Buffer>> = {
        GetControlPlaneNodes: encode([
          5,
          [
            [1, '10.1.0.1'],
            [5, 'https://10.1.0.1:6443'],
          ],
        ]),
        ManualSync: encode([
          5,
          [
            [10, 'k'],
            [15, 'e'],
            [20, 'i'],
            [25, 'x'],
            [25, 'y'],
          ],
        ]),
        RegenerateCertificate: encode([5, 'key'], [10, 'crt'], [15, 'ca']),
      };
      call.send(answers[path.slice(L2.length + 1)] ?? encode());
      call.stream.end();
    });
    const calls = new GrpcNodewardCalls({ connections, address: () => address });
    expect(await calls.controlPlaneNodes({ signal })).toEqual([{ vpnIp: '10.1.0.1', kubeEndpoint: 'https://10.1.0.1:6443' }]);
    const self = { pubKey: 'own', endpointIp: 'e', ip: 'i', extraAllowedIps: ['z'] };
    expect(await calls.manualSync(self, true, { signal })).toEqual({
      peers: [{ pubKey: 'k', endpointIp: 'e', ip: 'i', extraAllowedIps: ['x', 'y'] }],
      address: '',
    });
    await calls.updateStatus('READY', { signal });
    await calls.addNodelog(
      { type: 't', severity: 'failure', message: 'm', code: 'c', cause: 'y', remedy: 'r', docsUrl: 'u' },
      { signal },
    );
    expect(await calls.regenerateCertificate(Buffer.from([0x30]), { signal })).toEqual({
      privateKey: 'key',
      certificate: 'crt',
      ca: 'ca',
    });
    expect(bodies).toEqual([
      'GetControlPlaneNodes ',
      'ManualSync 10,25',
      'UpdateStatus 5',
      'AddNodelog 5,10,15,20,25,30,35',
      'RegenerateCertificate 5',
    ]);
    expect(raw.served).toHaveLength(5);
  });
});
