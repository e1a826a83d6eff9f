import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcNodeServer, type GrpcNodeServerParts } from '../../../src/adapters/link/grpc-node-server.js';
import type { ClientPair } from '../../../src/adapters/link/link-connection.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { heartbeatAnswer } from '../../../src/domain/link/heartbeat.js';
import { epoch, HEARTBEAT_TYPE, type ServerMessage } from '../../../src/domain/link/model.js';
import type { LinkStream } from '../../../src/ports/link/control-link.js';
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
  serverFacts,
  serverPair,
} from '../../support/link-rig.js';
import { tempFolder } from '../../support/temp-folder.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const pki = new ThrowawayPki();
const pair = nodePair(pki);
const server = serverPair(pki);
const strangers = new ThrowawayPki('another root');
const signal = AbortSignal.timeout(120_000);
const clock = new SystemClock();
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(() => {
  pki.remove();
  strangers.remove();
});

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
  return { streams, calls, enrolment, logger, node, address: { host: 'localhost', port: node.port } };
}

function linking(read: () => ClientPair = () => pair) {
  const connections = new LinkConnections({ readPair: async () => read(), clock });
  const link = new GrpcControlLink({ connections, clock });
  closers.push(() => link.close());
  return { link, connections };
}

async function next(stream: LinkStream): Promise<ServerMessage> {
  for await (const message of stream.messages) return message;
  throw new Error('the stream ended');
}

const message = (tag: string, type = 'GET_NODE_STATUS') => ({ type, tag, jsonB64: 'e30=' });

describe('a stream', () => {
  test('B1: facts go both ways, the epoch before any message', async () => {
    const { streams, address } = await serving();
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    expect(await stream.server).toEqual(serverFacts);
    expect(streams.newest.stream.agent).toEqual(facts);
    expect(streams.newest.stream.node.identity).toEqual({ role: 'node', aid: 'acme', nid: 'n1', registration: 'reg1' });
    expect(stream.localAddress()).toBe('127.0.0.1');
    expect(Math.abs(stream.clockSkewMs ?? 1e9)).toBeLessThan(2_000);
  });

  test('messages both ways, in order, with what the server adds', async () => {
    const { streams, address } = await serving();
    streams.answer = ({ tag, type }, stream) => {
      if (type === HEARTBEAT_TYPE) void stream.send(heartbeatAnswer({ isHealthy: true, message: 'ok' }, tag));
      void stream.send({ ...message(`to-${tag}`), epoch: epoch(3n), expiresInMs: 1_500 });
    };
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    const sent = await Promise.all(['a', 'b', 'c'].map((tag) => stream.send(message(tag), { signal })));
    expect(sent).toEqual([true, true, true]);
    const got: ServerMessage[] = [];
    for await (const one of stream.messages) if (got.push(one) === 3) break;
    expect(got).toEqual(['to-a', 'to-b', 'to-c'].map((tag) => ({ ...message(tag), epoch: 3n, expiresInMs: 1_500 })));
  });

  test('one connection carries the streams of one address', async () => {
    const { node, streams, address } = await serving();
    const { link } = linking();
    const first = await link.open(address, facts, { signal });
    await first.server;
    const second = await link.open(address, { ...facts, session: 2 }, { signal });
    await second.server;
    expect([streams.seen.length, node.counts().connections?.accepted]).toEqual([2, 1]);
  });

  test('F5: a reloaded certificate goes over a connection of its own, and the old stream lives on', async () => {
    const { node, streams, address } = await serving();
    const pairs = [pair, nodePair(pki, 'n2')];
    const { link } = linking(() => pairs.shift() ?? pair);
    const old = await link.open(address, facts, { signal });
    await old.server;
    link.reloadCertificate();
    const renewed = await link.open(address, facts, { signal });
    await renewed.server;
    expect(node.counts().connections?.accepted).toBe(2);
    expect(streams.seen.map(({ stream }) => stream.node.identity.nid)).toEqual(['n1', 'n2']);
    void streams.seen[0]?.stream.send(message('still here'));
    expect((await next(old)).tag).toBe('still here');
    old.close();
    expect(await old.ended).toEqual({ what: 'closed', error: undefined, retryMs: undefined });
    await eventually(() => node.counts().connections?.open).toBe(1);
  });

  test.each([
    { status: 'superseded', message: 'SUPERSEDED epoch 4', code: 'link.superseded' },
    { status: 'duplicate', message: 'DUPLICATE_NODE: other, 10.0.0.1, since noon', code: 'link.duplicate' },
    { status: 'duplicate', message: 'other', code: 'link.duplicate' },
    { status: 'revoked', message: 'revoked', code: 'certificate.refused' },
    { status: 'expired', message: 'expired', code: 'certificate.refused' },
    { status: 'refused', message: 'no', code: 'link.refused' },
    { status: 'unavailable', message: 'no store', code: 'link.unreachable' },
  ] as const)('ends as $status', async ({ status, message: text, code }) => {
    const { streams, address } = await serving();
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    await stream.server;
    streams.newest.stream.end({ status, message: text });
    streams.newest.stream.end({ status: 'slow', message: 'too late' });
    const end = await stream.ended;
    expect(end).toMatchObject({ what: 'stream', retryMs: undefined, error: { code } });
    expect(end.error?.message).toContain(text);
    await eventually(() => streams.newest.closed).toBe(1);
    expect(await stream.send(message('late'), { signal })).toBe(false);
    expect(await streams.newest.stream.send(message('late'))).toBe(false);
  });

  test('I3: a planned stop says when to come back', async () => {
    const { streams, address } = await serving();
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    await stream.server;
    streams.newest.stream.end({ status: 'stopping', message: 'restart', retryMs: 4_321.4 });
    expect(await stream.ended).toMatchObject({ what: 'stream', retryMs: 4_321 });
  });

  test('a server that goes away is a dead connection', async () => {
    const { node, address } = await serving();
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    await stream.server;
    await node.stop();
    expect(await stream.ended).toMatchObject({ what: 'connection', error: { code: 'link.unreachable' } });
  });

  test('a refused opening is the end of the stream, with its reason', async () => {
    const { streams, address } = await serving();
    streams.refuses = new AgentError('link.refused', { problem: 'a clone' });
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    expect(await stream.server).toBeUndefined();
    expect(await stream.ended).toMatchObject({ what: 'stream', error: { code: 'link.refused', facts: { problem: 'a clone' } } });
  });

  test('messages over 12 MiB are refused before they are sent, and those below arrive whole', async () => {
    const { streams, address } = await serving();
    const { link } = linking();
    const stream = await link.open(address, facts, { signal });
    const body = (bytes: number) => ({ type: 'X', tag: 't', jsonB64: 'A'.repeat(bytes) });
    await expect(stream.send(body(12 * 1024 * 1024), { signal })).rejects.toMatchObject({ code: 'link.too_large' });
    expect(await stream.send(body(12 * 1024 * 1024 - 100), { signal })).toBe(true);
    await eventually(() => streams.newest.received.at(-1)?.jsonB64.length).toBe(12 * 1024 * 1024 - 100);
    expect(await streams.newest.stream.send(body(12 * 1024 * 1024 - 100))).toBe(true);
    expect((await next(stream)).jsonB64.length).toBe(12 * 1024 * 1024 - 100);
  });

  test('the last byte is that of the connection, whatever it belonged to', async () => {
    const { streams, address } = await serving();
    const { link, connections } = linking();
    const stream = await link.open(address, facts, { signal });
    await stream.server;
    const before = stream.lastByteAt();
    await clock.sleep(30, { signal });
    const other = await connections.to(address, { signal });
    expect(streams.seen.length).toBe(1);
    other.client
      .makeBidiStreamRequest(
        '/no.such/Method',
        (b: Buffer) => b,
        (b: Buffer) => b,
      )
      .on('error', () => {});
    await eventually(() => stream.lastByteAt() - before).toBeGreaterThanOrEqual(25);
  });

  test('pings begin with the connection after the announcement, and end with the first that lacks it', async () => {
    const { streams, address } = await serving();
    const { link, connections } = linking();
    streams.facts = { ...serverFacts, capabilities: new Set(['keepalive']) };
    const open = async () => {
      const stream = await link.open(address, facts, { signal });
      await stream.server;
      const { pings } = await connections.to(address, { signal });
      stream.close();
      await stream.ended;
      return pings;
    };
    expect(await open()).toBe(false);
    expect(await open()).toBe(true);
    streams.facts = serverFacts;
    // It said so last, and learns better.
    await open();
    expect(await open()).toBe(false);
  });
});

describe('a connection that cannot be made', () => {
  async function failure(host: string, port: number, read: () => ClientPair = () => pair): Promise<AgentError> {
    const { link } = linking(read);
    const error: unknown = await link.open({ host, port }, facts, { signal }).then(
      (stream) => stream.ended.then(({ error: ended }) => ended),
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof AgentError)) throw error;
    return error;
  }

  async function closedPort(): Promise<number> {
    const { node } = await serving();
    const { port } = node;
    await node.stop();
    return port;
  }

  test('a closed port', async () => {
    const port = await closedPort();
    const error = await failure('localhost', port);
    expect([error.code, error.facts.problem]).toEqual(['link.unreachable', expect.stringContaining('nothing listens there')]);
    expect(error.facts.problem).toContain(`localhost:${port}`);
  });

  test('a name that nobody knows', async () => {
    const error = await failure('no-such-host.invalid', 9192);
    expect(error.code).toBe('link.unreachable');
    expect(error.facts.problem).toMatch(/^no-such-host\.invalid: the name service does not/);
  });

  test('a port that speaks no TLS', async () => {
    const sockets = new Set<Socket>();
    const plain = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.end('SSH-2.0-OpenSSH_10\r\n');
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      plain.close();
    });
    const address = plain.address();
    const error = await failure('127.0.0.1', typeof address === 'object' && address !== null ? address.port : 0);
    expect([error.code, error.facts.problem]).toEqual(['link.unreachable', expect.stringContaining('no TLS is spoken there')]);
  });

  test('a port that says nothing: 10 s', { timeout: 20_000 }, async () => {
    const silent = createServer((socket) => void socket.on('error', () => {}));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    closers.push(() => void silent.close());
    const address = silent.address();
    const startedAt = performance.now();
    const error = await failure('127.0.0.1', typeof address === 'object' && address !== null ? address.port : 0);
    expect([error.code, error.facts.problem]).toEqual(['link.unreachable', expect.stringContaining('no connection within 10 s')]);
    expect(performance.now() - startedAt).toBeGreaterThan(9_900);
  });

  test('a server whose root is not ours, is for another name, or has expired', async () => {
    const foreign = await serving({ pair: () => ({ ...serverPair(strangers), clientRoots: [pki.root] }) });
    expect(await failure('localhost', foreign.address.port)).toMatchObject({
      code: 'certificate.untrusted',
      facts: { problem: expect.stringContaining('its root is not ours') },
    });
    const other = await serving({ pair: () => serverPair(pki, ['DNS:elsewhere.example']) });
    expect(await failure('localhost', other.address.port)).toMatchObject({
      code: 'certificate.untrusted',
      facts: { problem: expect.stringContaining('it is not for this name') },
    });
    const old = pki.issue({
      name: 's',
      san: ['DNS:localhost'],
      usage: 'serverAuth',
      from: '20200101000000Z',
      to: '20200201000000Z',
    });
    const expired = await serving({ pair: () => ({ ...old, clientRoots: [pki.root] }) });
    const error = await failure('localhost', expired.address.port);
    expect(error.code).toBe('certificate.untrusted');
    expect(error.facts.problem).toMatch(/it has expired \(valid from Jan .*2020 GMT to Feb .*2020 GMT; the clock here says /);
  });

  test('F3: the server says what it has against our certificate, and what its clock says', async () => {
    const { address, node } = await serving();
    const error = await failure('localhost', address.port, () => ({ ...nodePair(strangers), ca: pki.root }));
    expect(error.code).toBe('certificate.refused');
    expect(error.facts.problem).toMatch(
      /^the certificate is not good: .* \(valid from .* to .*; the server's clock says .* GMT\)$/,
    );
    const expired = nodePair(pki, 'n1', { from: '20200101000000Z', to: '20200201000000Z' });
    expect((await failure('localhost', address.port, () => expired)).facts.problem).toMatch(/CERT_HAS_EXPIRED.*2020 GMT/);
    expect(node.counts().refused).toBe(2);
  });

  test('a server that refuses our certificate by an alert of TLS, as other servers do', async () => {
    const folder = await tempFolder();
    const files = { crt: server.certificate, key: server.privateKey, ca: pki.root };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const pem = ['-cert', join(folder, 'crt'), '-key', join(folder, 'key'), '-CAfile', join(folder, 'ca')];
    const other = spawn('openssl', [
      's_server',
      '-accept',
      '127.0.0.1:0',
      '-alpn',
      'h2',
      '-Verify',
      '1',
      '-verify_return_error',
      ...pem,
    ]);
    closers.push(() => void other.kill());
    const port = await new Promise<number>((resolve) =>
      other.stdout.on('data', (text: Buffer) => {
        const match = /ACCEPT .*:(\d+)/.exec(String(text));
        if (match !== null) resolve(Number(match[1]));
      }),
    );
    const error = await failure('localhost', port, () => ({ ...nodePair(strangers), ca: pki.root }));
    expect([error.code, error.facts.problem]).toEqual([
      'certificate.refused',
      expect.stringMatching(/the server refuses our certificate: unknown certificate authority$/),
    ]);
  });

  test('F4: a revoked one is refused at the next call', async () => {
    const { address, enrolment } = await serving();
    enrolment.revoked = new AgentError('certificate.revoked', { problem: 'revoked yesterday' });
    const error = await failure('localhost', address.port);
    expect([error.code, error.facts.problem]).toEqual(['certificate.refused', expect.stringContaining('revoked yesterday')]);
  });

  test('a pair that does not fit together', async () => {
    const { address } = await serving();
    const error = await failure('localhost', address.port, () => ({ ...pair, privateKey: nodePair(pki).privateKey }));
    expect(error.code).toBe('certificate.unusable');
  });
});
