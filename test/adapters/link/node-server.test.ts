import { createHash } from 'node:crypto';
import { connect } from 'node:tls';
import type { ServerWritableStream } from '@grpc/grpc-js';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import {
  type HealthServer,
  HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../../src/adapters/generated/grpc/health/v1/health.js';
import { GrpcNodeServer, type GrpcNodeServerParts } from '../../../src/adapters/link/grpc-node-server.js';
import { logServiceDefinition } from '../../../src/adapters/log/grpc-log-service.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { eventually } from '../../support/eventually.js';
import {
  FakeRevocations,
  judgePeer,
  nodePair,
  RecordingCalls,
  RecordingEnrolment,
  RecordingStreams,
  serverPair,
} from '../../support/link-rig.js';
import { frame, L2, RawClient } from '../../support/raw-grpc.js';
import { encode, RawMessage } from '../../support/raw-protobuf.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const pki = new ThrowawayPki();
const { ca, certificate: cert, privateKey: key } = nodePair(pki);
const server = serverPair(pki);
const clock = new SystemClock();
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(() => pki.remove());

async function serving(more: Partial<GrpcNodeServerParts> = {}) {
  const [streams, calls, enrolment, logger] = [
    new RecordingStreams(),
    new RecordingCalls(),
    new RecordingEnrolment(),
    new FakeLogger(),
  ];
  const revocations = new FakeRevocations();
  const listen = { host: '127.0.0.1', port: 0 };
  const node = new GrpcNodeServer({
    listen,
    pair: () => server,
    judgePeer,
    streams,
    calls,
    enrolment,
    revocations,
    clock,
    logger,
    ...more,
  });
  await node.start();
  closers.push(() => node.stop());
  return { streams, calls, enrolment, revocations, logger, node };
}

function client(port: number): RawClient {
  const raw = new RawClient(port, { ca, cert, key });
  closers.push(() => raw.close());
  return raw;
}

const message = (tag: string) => ({ type: 'X', tag, jsonB64: 'e30=' });
const tagOf = (bytes: Buffer) => new RawMessage(bytes).text(10);

describe('a stream at the server', () => {
  test('B1: what is sent before the opening is done comes after the headers', async () => {
    const { node, streams } = await serving();
    const open = streams.open.bind(streams);
    streams.open = async (stream) => {
      void stream.send(message('early'));
      await clock.sleep(30, { signal: AbortSignal.timeout(1_000) });
      return open(stream);
    };
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    expect((await call.headers)['holdfast-epoch']).toBe('3');
    expect(tagOf(await call.next())).toBe('early');
  });

  test('what comes before the opening is done waits for it', async () => {
    const { node, streams } = await serving();
    const gate = Promise.withResolvers<void>();
    const open = streams.open.bind(streams);
    streams.open = async (stream) => {
      await gate.promise;
      return open(stream);
    };
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    call.send(encode([5, 'X'], [10, 'early']));
    await clock.sleep(50, { signal: AbortSignal.timeout(1_000) });
    gate.resolve();
    await call.headers;
    await eventually(() => streams.newest.received.map(({ tag }) => tag)).toEqual(['early']);
  });

  test('an agent that goes away while it opens is closed when it has', async () => {
    const { node, streams } = await serving();
    const gate = Promise.withResolvers<void>();
    const open = streams.open.bind(streams);
    streams.open = async (stream) => {
      await gate.promise;
      return open(stream);
    };
    const raw = client(node.port);
    const call = raw.call(`${L2}/NodeAgentStream`).read();
    await eventually(() => node.counts().connections?.open).toBe(1);
    raw.close();
    await call.status;
    await eventually(() => node.counts().connections?.open).toBe(0);
    gate.resolve();
    await eventually(() => streams.seen[0]?.closed).toBe(1);
    expect(await streams.newest.stream.send(message('late'))).toBe(false);
  });

  test('an opening that fails is a status, and a fault of ours is logged', async () => {
    const { node, streams, logger } = await serving();
    const raw = client(node.port);
    streams.refuses = new AgentError('store.unavailable', { problem: 'no quorum' });
    expect(await raw.call(`${L2}/NodeAgentStream`).read().status).toMatchObject({ code: 14, message: 'no quorum' });
    streams.refuses = new Error('a bug');
    expect(await raw.call(`${L2}/NodeAgentStream`).read().status).toMatchObject({ code: 13 });
    expect(logger.dump('error')).toBe('error a call of a node failed');
  });

  test('F4: it ends when its certificate does', async () => {
    const { node, streams } = await serving({
      judgePeer: (socket) => {
        const peer = judgePeer(socket);
        return typeof peer === 'string' ? peer : { ...peer, notAfter: Date.now() + 150 };
      },
    });
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    await call.headers;
    expect(await call.status).toMatchObject({ code: 16, message: expect.stringMatching(/^EXPIRED: .* GMT$/) });
    await eventually(() => streams.newest.closed).toBe(1);
  });

  test('I3: a planned stop has the delay in its trailers', async () => {
    const { node, streams } = await serving();
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    await call.headers;
    streams.newest.stream.end({ status: 'stopping', message: 'back soon: läuft', retryMs: 2_500 });
    const status = await call.status;
    expect([status.code, status.message, status.trailers['holdfast-retry-ms']]).toEqual([14, 'back soon: läuft', '2500']);
  });
});

test('I3: what was said just before a stop arrives, and silent peers do not hold it up', async () => {
  const { node, streams } = await serving();
  const calls = Array.from({ length: 20 }, () => client(node.port).call(`${L2}/NodeAgentStream`).read());
  await Promise.all(calls.map(({ headers }) => headers));
  const startedAt = clock.monotonic();
  for (const { stream } of streams.seen) stream.end({ status: 'stopping', message: 'restart', retryMs: 2_500 });
  await node.stop();
  expect(clock.monotonic() - startedAt).toBeLessThan(2_500);
  const ends = await Promise.all(calls.map(({ status }) => status));
  expect(ends.map(({ code, trailers }) => [code, trailers['holdfast-retry-ms']])).toEqual(calls.map(() => [14, '2500']));
});

test('a stranger is shown out; a node whose certificate was retired keeps its stream (F5)', async () => {
  const { node, streams, enrolment } = await serving();
  const stranger = new RawClient(node.port, { ca });
  closers.push(() => stranger.close());
  const closed = new Promise((resolve) => stranger.session.once('close', resolve));
  expect((await stranger.unary(`${L2}/ManualSync`, encode())).status.code).toBe(16);
  const raw = client(node.port);
  const call = raw.call(`${L2}/NodeAgentStream`).read();
  await call.headers;
  enrolment.revoked = new AgentError('certificate.revoked', { problem: 'retired' });
  expect((await raw.unary(`${L2}/ManualSync`, encode())).status).toMatchObject({
    code: 16,
    message: expect.stringContaining('retired'),
  });
  await closed;
  await clock.sleep(1_200, { signal: AbortSignal.timeout(5_000) });
  void streams.newest.stream.send(message('still here'));
  expect(tagOf(await call.next())).toBe('still here');
});

/** The log, of which every watch says so much at once and then nothing more. */
function talking(bytes: number): Pick<GrpcNodeServerParts, 'services'> & { readonly left: () => number } {
  let open = 0;
  const watch = (call: ServerWritableStream<unknown, Buffer>) => {
    open++;
    call.once('cancelled', () => open--);
    for (let said = 0; said < bytes; said += 1_024) call.write(Buffer.alloc(1_024));
  };
  return { services: [{ definition: logServiceDefinition, implement: () => ({ watch }) }], left: () => open };
}

const WATCH = '/holdfast.log.v1.LogService/Watch';

describe('F4: whatever a node has open ends when its certificate is no longer good', () => {
  test.each([
    ['node', 'n1'],
    ['registration', 'reg1'],
    ['serial', undefined],
  ] as const)('revoked by %s: the main stream and those of other services, within a second', async (of, id) => {
    const others = talking(1);
    const { node, streams, revocations } = await serving(others);
    const raw = client(node.port);
    const main = raw.call(`${L2}/NodeAgentStream`).read();
    const watch = raw.call(WATCH).read();
    watch.stream.end(frame(encode()));
    await Promise.all([main.headers, watch.headers]);
    const { serial } = streams.newest.stream.node;
    revocations.revoke(of, 'another');
    const begun = performance.now();
    revocations.revoke(of, id ?? serial);
    const revoked = { code: 16, message: 'revoked: it was stolen' };
    expect(await Promise.all([main.status, watch.status])).toMatchObject([revoked, revoked]);
    await eventually(() => [streams.newest.closed, others.left()]).toEqual([1, 0]);
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  test('one that does not read loses its connection', async () => {
    const others = talking(4 * 1024 * 1024);
    const { node, revocations } = await serving(others);
    const watch = client(node.port).call(WATCH);
    watch.stream.end(frame(encode()));
    await eventually(() => others.left()).toBe(1);
    const begun = performance.now();
    revocations.revoke('node', 'n1');
    await eventually(() => [others.left(), node.counts().connections?.open]).toEqual([0, 0]);
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  test('others go on', async () => {
    const others = talking(1);
    const { node, revocations } = await serving(others);
    const watch = client(node.port).call(WATCH).read();
    watch.stream.end(frame(encode()));
    await watch.next();
    for (const of of ['node', 'registration', 'serial'] as const) revocations.revoke(of, 'another');
    await clock.sleep(600, { signal: AbortSignal.timeout(5_000) });
    expect([others.left(), watch.stream.closed]).toEqual([1, false]);
  });

  test('expired: a stream of another service as well', async () => {
    const others = talking(1);
    const { node } = await serving({
      ...others,
      judgePeer: (socket) => {
        const peer = judgePeer(socket);
        return typeof peer === 'string' ? peer : { ...peer, notAfter: Date.now() + 150 };
      },
    });
    const watch = client(node.port).call(WATCH).read();
    watch.stream.end(frame(encode()));
    expect(await watch.status).toMatchObject({ code: 16, message: expect.stringMatching(/^EXPIRED: .* GMT$/) });
    await eventually(() => others.left()).toBe(0);
  });
});

describe('the server', () => {
  test('further services know the node that calls', async () => {
    const definition = HealthService;
    const { node } = await serving({
      services: [
        {
          definition,
          implement: (nodeOf) => {
            const check: HealthServer['check'] = (call, callback) =>
              callback(null, { status: nodeOf(call).identity.nid === 'n1' ? Serving.SERVING : Serving.NOT_SERVING });
            return { check };
          },
        },
      ],
    });
    const { response } = await client(node.port).unary('/grpc.health.v1.Health/Check', encode());
    expect(new RawMessage(response ?? Buffer.alloc(0)).number(1)).toBe(1n);
    const stranger = new RawClient(node.port, { ca });
    closers.push(() => stranger.close());
    expect((await stranger.unary('/grpc.health.v1.Health/Check', encode())).status.code).toBe(16);
  });

  test('a port that is taken is named', async () => {
    const { node } = await serving();
    await expect(serving({ listen: { host: '127.0.0.1', port: node.port } })).rejects.toMatchObject({
      code: 'link.not_served',
      facts: { problem: expect.stringContaining(`127.0.0.1:${node.port}: listen EADDRINUSE`) },
    });
  });

  test('stop is safe before the start and twice, and it starts again', async () => {
    const { node, streams } = await serving();
    await node.start();
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    await call.headers;
    await node.stop();
    await node.stop();
    await call.status;
    await eventually(() => streams.newest.closed).toBe(1);
    await node.start();
    expect((await client(node.port).call(`${L2}/NodeAgentStream`).read().headers)['holdfast-epoch']).toBe('3');
  });

  test('a reload counts for new connections', async () => {
    let pair = serverPair(pki);
    const { node } = await serving({ pair: () => pair });
    const peerSerial = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect({ host: 'localhost', port: node.port, ca, cert, key, ALPNProtocols: ['h2'] }, () => {
          resolve(socket.getPeerCertificate().serialNumber);
          socket.destroy();
        });
        socket.once('error', reject);
      });
    const before = await peerSerial();
    pair = serverPair(pki);
    expect(await peerSerial()).toBe(before);
    node.reload();
    expect(await peerSerial()).not.toBe(before);
  });

  test('a judge that throws refuses, and is logged', async () => {
    const { node, logger } = await serving({
      judgePeer: () => {
        throw new Error('a bug');
      },
    });
    const { status } = await client(node.port).unary(`${L2}/GetControlPlaneNodes`, encode());
    expect([status.code, status.message]).toEqual([16, expect.stringContaining('the certificate could not be judged')]);
    expect(logger.dump('error')).toBe('error a certificate could not be judged');
  });
});

describe('A15c: an upload', () => {
  const PATH = '/holdfast.link.v1.ResultService/Upload';
  const digest = (data: Buffer) => createHash('sha256').update(data).digest();
  // tag = 1, type = 2, data = 3, sha256 = 4.
  const head = (data: Buffer) => encode([1, 't'], [2, 'X'], [3, data]);

  test('in pieces, whole at the end', async () => {
    const { node, calls } = await serving();
    const call = client(node.port).call(PATH).read();
    call.send(head(Buffer.from('abc')));
    call.send(encode([3, Buffer.from('def')], [4, digest(Buffer.from('abcdef'))]));
    call.stream.end();
    expect(await call.status).toMatchObject({ code: 0 });
    expect(calls.seen).toEqual(['n1 uploaded {"tag":"t","type":"X","length":6}']);
  });

  test.each([
    {
      name: 'another digest',
      pieces: [encode([1, 't'], [2, 'X'], [3, Buffer.from('a')], [4, digest(Buffer.from('b'))])],
      code: 7,
    },
    { name: 'no digest', pieces: [head(Buffer.from('a'))], code: 7 },
    { name: 'no tag', pieces: [encode([3, Buffer.from('a')], [4, digest(Buffer.from('a'))])], code: 7 },
    { name: 'nothing', pieces: [], code: 7 },
    { name: 'too much', pieces: Array.from({ length: 13 }, () => head(Buffer.alloc(1024 * 1024))), code: 8 },
  ])('with $name is refused', async ({ pieces, code }) => {
    const { node, calls } = await serving();
    const call = client(node.port).call(PATH).read();
    for (const piece of pieces) call.send(piece);
    call.stream.end();
    expect(await call.status).toMatchObject({ code });
    expect(calls.seen).toEqual([]);
  });

  test('two at once for each node', async () => {
    const { node, calls } = await serving();
    const raw = client(node.port);
    const begun = [raw.call(PATH).read(), raw.call(PATH).read()];
    for (const call of begun) call.send(head(Buffer.from('a')));
    await clock.sleep(50, { signal: AbortSignal.timeout(1_000) });
    expect(await raw.call(PATH).read().status).toMatchObject({ code: 8, message: 'too many uploads of this node at once' });
    for (const call of begun) {
      call.send(encode([4, digest(Buffer.from('a'))]));
      call.stream.end();
      expect(await call.status).toMatchObject({ code: 0 });
    }
    expect(calls.seen).toHaveLength(2);
    const again = raw.call(PATH).read();
    again.send(encode([1, 't'], [2, 'X'], [4, digest(Buffer.alloc(0))]));
    again.stream.end();
    expect(await again.status).toMatchObject({ code: 0 });
  });
});
