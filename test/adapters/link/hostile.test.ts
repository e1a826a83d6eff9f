import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcNodeServer } from '../../../src/adapters/link/grpc-node-server.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import type { AcceptLimits } from '../../../src/adapters/link/tls-acceptor.js';
import { heartbeatAnswer } from '../../../src/domain/link/heartbeat.js';
import { HEARTBEAT_TYPE, type ServerMessage } from '../../../src/domain/link/model.js';
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
import { L2, RawClient, type RawServed, RawServer } from '../../support/raw-grpc.js';
import { encode, type RawField, RawMessage } from '../../support/raw-protobuf.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

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

const envelope = (type: string, tag: string, jsonB64 = 'e30=') => encode([1, jsonB64], [5, type], [10, tag]);
const tagOf = (bytes: Buffer) => new RawMessage(bytes).text(10);

/** 40 messages that no decent peer sends; `passed` are well-formed envelopes, whose content is their reader's affair. */
function nastyMessages(): { readonly dropped: readonly Buffer[]; readonly passed: readonly Buffer[] } {
  const field = (number: number, bytes: Buffer): RawField => [number, bytes];
  const dropped = [
    Buffer.from([0xff]),
    Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
    Buffer.from([0x0a, 0x05, 0x41]),
    Buffer.from([0x2a]),
    Buffer.alloc(64, 0xff),
    Buffer.alloc(64),
    Buffer.from([0x0b, 0x0b, 0x0b]),
    Buffer.from([0x0f]),
    encode(),
    encode([1, 'e30=']),
    encode([5, 'GET_NODE_STATUS']),
    encode([10, 'tag']),
    envelope('', 'tag'),
    envelope('X', ''),
    envelope('X'.repeat(129), 'tag'),
    envelope('X', 't'.repeat(129)),
    envelope('X', 'line\nend'),
    envelope('X\0', 'tag'),
    envelope('X', 'ümlaut'),
    encode([1, 'e30='], field(5, Buffer.from([0x58, 0xff, 0xfe])), [10, 'tag']),
    encode([1, 'e30='], [5, 'X'], field(10, Buffer.from([0xc0, 0x80]))),
    encode([1, 1], [5, 2], [10, 3]),
    encode([5, [[5, 'nested']]], [10, [[10, 'nested']]]),
  ];
  const passed = [
    envelope('X', 'no-base64', '%%%'),
    envelope('X', 'no-padding', 'e30'),
    envelope('X', 'no-json', Buffer.from('{"a":').toString('base64')),
    envelope('X', 'deep', Buffer.from('['.repeat(10_000)).toString('base64')),
    envelope('X', 'empty', ''),
    envelope('X', 'large', 'A'.repeat(1024 * 1024)),
    envelope('NO_SUCH_TYPE', 'unknown-type'),
    envelope('ERROR', 'raw', 'exit status 1'),
    envelope('ERROR', 'raw', 'exit status 1'),
    envelope('NO_CONTENT', 'never-sent'),
    envelope('RESULT_ACK', 'never-sent'),
    envelope('__proto__', 'constructor'),
    encode([1, 'e30='], [5, 'X'], [10, 'unknown-fields'], [99, 'x'], [200, 7]),
    encode([1, 'e30='], [5, 'X'], [10, 'extra'], [20, -1], [25, -1]),
    encode([5, 'X'], [5, 'Y'], [10, 'a'], [10, 'twice']),
    encode([1, 'e30='], [5, 'X'], [10, 'largest'], [20, 2n ** 63n - 1n], [25, 2n ** 63n - 1n]),
    encode([1, Buffer.from([0xff, 0xfe])], [5, 'ERROR'], [10, 'no-utf8']),
  ];
  return { dropped, passed };
}

async function serving(limits: Partial<AcceptLimits> = {}) {
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
    limits,
    clock,
    logger,
  });
  await node.start();
  closers.push(() => node.stop());
  streams.answer = ({ type, tag }, stream) => {
    if (type === HEARTBEAT_TYPE) void stream.send(heartbeatAnswer({ isHealthy: true, message: '' }, tag));
  };
  /** A decent agent is served, within 5 s. */
  const serves = async () => {
    const raw = client(node.port);
    const call = raw.call(`${L2}/NodeAgentStream`).read();
    const answered = AbortSignal.timeout(5_000);
    call.send(envelope(HEARTBEAT_TYPE, 'decent'));
    expect(tagOf(await call.next())).toBe('decent');
    expect(answered.aborted).toBe(false);
    raw.close();
  };
  return { streams, node, logger, serves };
}

function client(port: number, more: object = {}): RawClient {
  const raw = new RawClient(port, { ca, cert, key }, more);
  closers.push(() => raw.close());
  return raw;
}

describe('a hostile agent', () => {
  test('C5: forty bad messages cost forty messages, and not the stream', async () => {
    const { node, streams, serves } = await serving();
    const { dropped, passed } = nastyMessages();
    expect(dropped.length + passed.length).toBe(40);
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    for (const bytes of [...dropped, ...passed]) call.send(bytes);
    call.send(envelope(HEARTBEAT_TYPE, 'after'));
    expect(tagOf(await call.next())).toBe('after');
    expect(node.counts().malformed).toBe(dropped.length);
    expect(streams.newest.received).toHaveLength(passed.length + 1);
    await serves();
  });

  test('a handler that throws costs that message', async () => {
    const { node, streams, logger } = await serving();
    const answer = streams.answer;
    streams.answer = (message, stream) => {
      if (message.type === 'BAD') throw new Error('broken');
      answer(message, stream);
    };
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    call.send(envelope('BAD', 'a'));
    call.send(envelope(HEARTBEAT_TYPE, 'after'));
    expect(tagOf(await call.next())).toBe('after');
    expect(logger.dump('error')).toBe('error a call of a node failed');
  });

  test('I1: one that never reads is slow at 4 MiB, and its connection goes; memory stays', { timeout: 30_000 }, async () => {
    const { node, streams, serves } = await serving();
    const call = client(node.port).call(`${L2}/NodeAgentStream`);
    await call.headers;
    const { stream } = streams.newest;
    const before = process.memoryUsage().rss;
    const sent: Promise<boolean>[] = [];
    const body = 'A'.repeat(64 * 1024);
    for (let index = 0; index < 1_000; index++) sent.push(stream.send({ type: 'X', tag: `t${index}`, jsonB64: body }));
    expect((await Promise.all(sent)).filter(Boolean).length).toBeLessThan(30);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    await eventually(() => streams.newest.closed).toBe(1);
    expect(await call.status).toMatchObject({ code: -1 });
    await serves();
  });

  test('I2: heartbeats beyond 2 a second are dropped, ten at once are not', async () => {
    const { node, streams, serves } = await serving();
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    for (let index = 0; index < 500; index++) call.send(envelope(HEARTBEAT_TYPE, `b${index}`));
    call.send(envelope('END', 'end'));
    await eventually(() => streams.newest.received.at(-1)?.type).toBe('END');
    const beats = streams.newest.received.length - 1;
    expect(beats).toBeGreaterThanOrEqual(10);
    expect(beats).toBeLessThan(40);
    expect(node.counts().limited).toBe(500 - beats);
    await clock.sleep(600, { signal });
    await serves();
  });

  test('I2: statuses and log lines are limited for each node', async () => {
    const { node } = await serving();
    const raw = client(node.port);
    const codes = async (method: string, count: number) => {
      const answers = await Promise.all(Array.from({ length: count }, () => raw.unary(`${L2}/${method}`, encode([5, 'x']))));
      return answers.map(({ status }) => status.code);
    };
    const statuses = await codes('UpdateStatus', 20);
    expect(statuses.filter((code) => code === 0).length).toBeLessThan(10);
    expect(new Set(statuses)).toEqual(new Set([0, 8]));
    expect(new Set(await codes('AddNodelog', 20))).toEqual(new Set([0]));
  });

  test('a message that claims to be larger than 16 MiB ends its call before it comes', async () => {
    const { node, serves } = await serving();
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    await call.headers;
    call.stream.write(Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]));
    expect(await call.status).toMatchObject({ code: 8 });
    await serves();
  });

  test('I2: more than 16 KiB of headers are refused', async () => {
    const { node, serves } = await serving();
    const headers = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x-${index}`, 'y'.repeat(1_000)]));
    const raw = client(node.port);
    // The limit is in the settings, which the client has seen when this is answered.
    await raw.call(`${L2}/NodeAgentStream`).read().headers;
    expect(await raw.call(`${L2}/NodeAgentStream`, headers).read().status).toMatchObject({ code: -1 });
    await serves();
  });

  test('I2: 32 streams a connection', async () => {
    const { node, streams, serves } = await serving();
    const raw = client(node.port);
    await raw.call(`${L2}/NodeAgentStream`).read().headers;
    expect(raw.session.remoteSettings).toMatchObject({ maxConcurrentStreams: 32, maxHeaderListSize: 16_384 });
    const calls = Array.from({ length: 40 }, () => raw.call(`${L2}/NodeAgentStream`).read());
    await calls[30]?.headers;
    expect(streams.seen).toHaveLength(32);
    await serves();
  });

  test('I2: one that opens and resets streams without end loses its connection', async () => {
    const { node, serves } = await serving();
    const raw = client(node.port);
    const closed = new Promise((resolve) => raw.session.once('close', resolve));
    raw.session.on('error', () => {});
    const reset = () => {
      for (let index = 0; index < 20 && !raw.session.destroyed && !raw.session.closed; index++) {
        try {
          raw.call(`${L2}/NodeAgentStream`).stream.close(8);
        } catch {
          return;
        }
      }
      if (!raw.session.destroyed) setTimeout(reset, 2);
    };
    reset();
    await closed;
    await serves();
  });

  test('I2: one that pings without end leaves the server as it is', async () => {
    const { node, serves } = await serving();
    const raw = client(node.port, { maxOutstandingPings: 10_000 });
    await raw.call(`${L2}/NodeAgentStream`).read().headers;
    for (let index = 0; index < 5_000; index++) raw.session.ping(() => {});
    await serves();
  });
});

describe('I2: accepting', () => {
  const tcp = (port: number) => {
    const socket = connectTcp({ host: '127.0.0.1', port });
    socket.on('error', () => {});
    closers.push(() => void socket.destroy());
    return socket;
  };
  const gone = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()).resume());

  test('a handshake that does not end, and a connection without a call, are closed in time', async () => {
    const { node, serves } = await serving({ firstCallMs: 1_500 });
    const silent = Array.from({ length: 20 }, () => tcp(node.port));
    const idle = connectTls({ host: 'localhost', port: node.port, ca, cert, key, ALPNProtocols: ['h2'] });
    idle.on('error', () => {});
    await serves();
    await Promise.all([...silent, idle].map(gone));
    await eventually(() => node.counts().connections).toMatchObject({ timedOut: 21, unfinished: 0, waiting: 0 });
    await serves();
  });

  test('a connection with a call has all the time that it wants', async () => {
    const { node, streams } = await serving({ firstCallMs: 1_000 });
    const call = client(node.port).call(`${L2}/NodeAgentStream`).read();
    await call.headers;
    await clock.sleep(1_500, { signal });
    expect([streams.newest.closed, node.counts().connections?.timedOut]).toEqual([0, 0]);
  });

  test('what is no TLS, and what is no HTTP/2 within it', async () => {
    const { node, serves } = await serving({ firstCallMs: 1_000 });
    const plain = tcp(node.port);
    plain.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await gone(plain);
    const other = connectTls({ host: 'localhost', port: node.port, ca, cert, key, ALPNProtocols: ['h2'] });
    other.on('error', () => {});
    other.write(Buffer.alloc(64 * 1024, 0x41));
    await gone(other);
    expect(node.counts().connections).toMatchObject({ failedHandshakes: 1 });
    await serves();
  });

  test('those over the pace wait for their turn, and those over the queue are closed', async () => {
    const { node } = await serving({ perSecond: 10, waiting: 20, firstCallMs: 20_000 });
    const startedAt = clock.monotonic();
    const counts = () => node.counts().connections ?? { accepted: 0, waiting: 0, overflowed: 0 };
    const sockets = Array.from({ length: 60 }, () => tcp(node.port));
    await expect.poll(() => counts().accepted + counts().waiting + counts().overflowed, { timeout: 10_000 }).toBe(60);
    expect(counts().waiting).toBeLessThanOrEqual(20);
    expect(counts().overflowed).toBeGreaterThan(0);
    await clock.sleep(1_050, { signal });
    // A burst of a second, and the rate.
    const seconds = (clock.monotonic() - startedAt) / 1_000;
    expect(counts().accepted).toBeGreaterThanOrEqual(19);
    expect(counts().accepted).toBeLessThanOrEqual(10 + seconds * 10 + 1);
    for (const socket of sockets) socket.destroy();
    await eventually(() => node.counts().connections).toMatchObject({ waiting: 0, unfinished: 0 });
  });

  test('whoever has waited too long is closed without a turn, so that a crowd that gives up and comes again is let in', async () => {
    const { node, serves } = await serving({ perSecond: 10, waitMs: 1_000, firstCallMs: 20_000 });
    const crowd = Array.from({ length: 60 }, () => tcp(node.port));
    await eventually(() => node.counts().connections?.accepted).toBeGreaterThanOrEqual(10);
    for (const socket of crowd) socket.destroy();
    await eventually(() => node.counts().connections?.waiting).toBe(0);
    const { accepted = 0, waitedTooLong = 0 } = node.counts().connections ?? {};
    expect(accepted + waitedTooLong).toBe(60);
    // A burst of ten, and ten a second for as long as anybody waited.
    expect(waitedTooLong).toBeGreaterThan(20);
    await serves();
  });

  test('no more than so many are unfinished at once', async () => {
    const { node, serves } = await serving({ unfinished: 5, firstCallMs: 1_500 });
    const sockets = Array.from({ length: 12 }, () => tcp(node.port));
    await eventually(() => node.counts().connections).toMatchObject({ unfinished: 5, waiting: 7 });
    await Promise.all(sockets.map(gone));
    await eventually(() => node.counts().connections).toMatchObject({ accepted: 12, timedOut: 12, unfinished: 0 });
    await serves();
  });
});

describe('a hostile server', () => {
  async function linked(onMessage: ConstructorParameters<typeof RawServer>[1]) {
    const raw = new RawServer({ ca, cert: server.certificate, key: server.privateKey }, onMessage);
    const port = await raw.listen();
    const connections = new LinkConnections({ readPair: async () => ({ ca, certificate: cert, privateKey: key }), clock });
    const link = new GrpcControlLink({ connections, clock });
    closers.push(
      () => raw.close(),
      () => link.close(),
    );
    return { raw, link, open: () => link.open({ host: 'localhost', port }, facts, { signal }) };
  }

  test('C5: forty bad messages cost forty messages, and not the stream', async () => {
    const { dropped, passed } = nastyMessages();
    const { link, open } = await linked((_, call) => {
      for (const bytes of [...dropped, ...passed, envelope('END', 'end')]) call.send(bytes);
    });
    const stream = await open();
    await stream.send({ type: HEARTBEAT_TYPE, tag: 'b', jsonB64: '' }, { signal });
    const got: ServerMessage[] = [];
    for await (const message of stream.messages) {
      got.push(message);
      if (message.type === 'END') break;
    }
    expect([got.length, link.malformed]).toEqual([passed.length + 1, dropped.length]);
    expect(got.find(({ tag }) => tag === 'extra')).toEqual({ type: 'X', tag: 'extra', jsonB64: 'e30=', expiresInMs: 0 });
  });

  test('garbage in the headers is as if they were absent', async () => {
    const { open } = await linked((_, { stream }) => {
      stream.respond({
        ':status': 200,
        'content-type': 'application/grpc',
        'holdfast-fleet': 'f',
        'holdfast-epoch': 'x',
        date: 'noon',
      });
    });
    const stream = await open();
    await stream.send({ type: 'X', tag: 'b', jsonB64: '' }, { signal });
    expect([await stream.server, stream.clockSkewMs]).toEqual([undefined, undefined]);
  });

  test.each<{ name: string; answer: (call: RawServed) => void }>([
    {
      name: 'a page of HTML',
      answer: ({ stream }) => stream.respond({ ':status': 502, 'content-type': 'text/html' }, { endStream: true }),
    },
    { name: 'no status at all', answer: ({ stream }) => stream.respond({ ':status': 200 }, { endStream: true }) },
    {
      name: 'a status of nobody',
      answer: ({ stream }) =>
        stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '4711' }, { endStream: true }),
    },
  ])('$name is the end of the stream, and no more', async ({ answer }) => {
    const { open } = await linked((_, call) => answer(call));
    const stream = await open();
    await stream.send({ type: 'X', tag: 'b', jsonB64: '' }, { signal });
    expect(await stream.ended).toMatchObject({ what: 'stream', error: { name: 'AgentError' } });
    const again = await open();
    await again.send({ type: 'X', tag: 'b', jsonB64: '' }, { signal });
    await again.ended;
  });

  test('a message over 16 MiB ends the stream, and the next one works', async () => {
    let first = true;
    const { open } = await linked((_, call) => {
      call.send(envelope('X', 'a', 'A'.repeat(first ? 17 * 1024 * 1024 : 15 * 1024 * 1024)));
      first = false;
    });
    const stream = await open();
    await stream.send({ type: 'X', tag: 'b', jsonB64: '' }, { signal });
    expect(await stream.ended).toMatchObject({ what: 'stream', error: { code: 'link.refused' } });
    const again = await open();
    await again.send({ type: 'X', tag: 'b', jsonB64: '' }, { signal });
    for await (const message of again.messages) {
      expect(message.jsonB64.length).toBe(15 * 1024 * 1024);
      break;
    }
  });

  test('one that never reads: what is sent waits, and is given up with the stream', async () => {
    const { raw, open } = await linked(() => {});
    const stream = await open();
    // The first message is what makes an older server speak; it is told to stop reading then.
    void stream.send({ type: 'X', tag: 'b', jsonB64: '' }, { signal });
    await eventually(() => raw.served.length).toBe(1);
    raw.served[0]?.stream.pause();
    const body = 'A'.repeat(1024 * 1024);
    const sent = Array.from({ length: 4 }, (_, index) => stream.send({ type: 'X', tag: `t${index}`, jsonB64: body }, { signal }));
    const taken = await Promise.race([sent.at(-1), clock.sleep(300, { signal }).then(() => 'waits')]);
    expect(taken).toBe('waits');
    stream.close();
    expect((await Promise.all(sent)).at(-1)).toBe(false);
    expect(await stream.ended).toMatchObject({ what: 'closed' });
  });
});
