import { connect, createServer, type Socket } from 'node:net';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcNodeServer } from '../../../src/adapters/link/grpc-node-server.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { GrpcLogConnection } from '../../../src/adapters/log/grpc-log-connection.js';
import { LogServiceHandler } from '../../../src/adapters/log/grpc-log-handler.js';
import { logServiceDefinition, logServiceImplementation } from '../../../src/adapters/log/grpc-log-service.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { nodeReads } from '../../../src/domain/log/visibility.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
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
import { everything } from '../../support/log-service-rig.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const { signal } = new AbortController();
const options = { signal };
const clock = new SystemClock();
const stops: (() => unknown)[] = [];
const pki = new ThrowawayPki();
const pair = nodePair(pki);
const serverFiles = serverPair(pki);

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(() => pki.remove());

/** A control plane with link and log. */
async function served() {
  const [log, streams, logger] = [new FakeOrderedLog({ clock }), new RecordingStreams(), new FakeLogger()];
  const handler = new LogServiceHandler({ log, clock, proposals: everything(log), reads: nodeReads });
  const names = { bind: async () => {}, nameOf: () => undefined };
  const node = new GrpcNodeServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, pair: () => serverFiles, judgePeer, streams, clock, logger },
    ...{ calls: new RecordingCalls(), enrolment: new RecordingEnrolment(), revocations: new FakeRevocations() },
    services: [
      {
        definition: logServiceDefinition,
        implement: (peerOf) => logServiceImplementation({ handler, peerOf, names, clock, logger }),
      },
    ],
  });
  await node.start();
  stops.push(async () => {
    await node.stop();
    handler.stop();
  });
  const connections = () => ({ accepted: node.counts().connections?.accepted, open: node.counts().connections?.open });
  return { log, streams, node, connections, watchers: () => handler.counts().watchers, port: node.port };
}

const localhost = (port: number) => ({ host: 'localhost', port });

/** Both of one agent. */
function agent(...ports: readonly number[]) {
  const connections = new LinkConnections({ readPair: async () => pair, clock });
  stops.push(() => connections.close());
  const log = new GrpcLogConnection({ connections, addresses: ports.map(localhost), nodeId: 'here' as NodeName, clock });
  return { connections, log, link: new GrpcControlLink({ connections, clock }) };
}

/** A watch that the server has. */
async function watching(log: GrpcLogConnection, { watchers }: { readonly watchers: () => number }) {
  const from = await log.head(options);
  const over = (async () => {
    for await (const _ of log.watch(from, options));
  })();
  over.catch(() => {});
  await expect.poll(watchers, { timeout: 10_000 }).toBe(1);
  // Not itself: a promise that is returned is waited for.
  return { over };
}

/** Hands on what comes until it is frozen: then the path is dead, and nobody is told. */
async function path(to: number) {
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const upstream = connect(to, '127.0.0.1');
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}));
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  });
  const at = relay.address();
  const freeze = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return { port: typeof at === 'object' && at !== null ? at.port : 0, freeze };
}

describe('GrpcLogConnection', () => {
  test('a server that is out of reach is left for the next one', async () => {
    const { log, port } = await served();
    const made = agent(1, port);
    await expect(made.log.head(options)).rejects.toMatchObject({ code: 'link.unreachable' });
    expect(await made.log.head(options)).toEqual(await log.head(options));
  });

  test('link and log have one connection, whichever is first', async () => {
    const server = await served();
    const { connections, port } = server;
    const made = agent(port);
    const { over } = await watching(made.log, server);
    await (await made.link.open(localhost(port), facts, options)).server;
    expect(connections()).toEqual({ accepted: 1, open: 1 });
    made.connections.close();
    await expect(over).rejects.toMatchObject({ code: 'link.unreachable' });
    await expect.poll(connections).toMatchObject({ open: 0 });
  });

  test('the log is served where the stream of the link is refused', async () => {
    const server = await served();
    const { log, streams, connections, port } = server;
    streams.refuses = new AgentError('link.duplicate', { problem: 'a clone' });
    const made = agent(port);
    const stream = await made.link.open(localhost(port), facts, options);
    expect(await stream.ended).toMatchObject({ what: 'stream' });
    await watching(made.log, server);
    expect(await made.log.head(options)).toEqual(await log.head(options));
    expect(connections().accepted).toBe(1);
  });

  test('F5: a renewed pair is tried by the link, and the log stays until its stream is let in there; then the old connection goes', async () => {
    const server = await served();
    const { streams, connections, watchers, port } = server;
    const made = agent(port);
    const old = await made.link.open(localhost(port), facts, options);
    await old.server;
    const { over } = await watching(made.log, server);
    made.link.reloadCertificate();
    streams.refuses = new AgentError('link.refused', { problem: 'not yet' });
    await (await made.link.open(localhost(port), facts, options)).ended;
    expect([watchers(), connections().accepted]).toEqual([1, 2]);
    streams.refuses = undefined;
    await (await made.link.open(localhost(port), facts, options)).server;
    await expect(over).rejects.toMatchObject({ code: 'link.unreachable' });
    await watching(made.log, server);
    old.close();
    await expect.poll(connections).toEqual({ accepted: 2, open: 1 });
  });

  test('a link that goes to another server, as from one that drains, takes the log along', async () => {
    const [first, second] = [await served(), await served()];
    const made = agent(first.port, second.port);
    const old = await made.link.open(localhost(first.port), facts, options);
    await old.server;
    const { over } = await watching(made.log, first);
    await (await made.link.open(localhost(second.port), facts, options)).server;
    await expect(over).rejects.toMatchObject({ code: 'link.unreachable' });
    await watching(made.log, second);
    expect([first.watchers(), second.watchers()]).toEqual([0, 1]);
  });

  test('a server that stops is left with both, and found again by a log without a link', async () => {
    const [first, second] = [await served(), await served()];
    const made = agent(first.port, second.port);
    const stream = await made.link.open(localhost(first.port), facts, options);
    await stream.server;
    const { over } = await watching(made.log, first);
    await first.node.stop();
    await expect(over).rejects.toBeInstanceOf(AgentError);
    expect((await stream.ended).what).toBe('connection');
    await watching(made.log, second);
    expect(second.watchers()).toBe(1);
  });

  test('a call after the end takes its connection with it', async () => {
    const { connections, port } = await served();
    const made = agent(port);
    made.connections.close();
    await made.log.head(options);
    await expect.poll(connections).toEqual({ accepted: 1, open: 0 });
  });

  test('a path that dies without a word is noticed within 16 s, also without a link', { timeout: 60_000 }, async () => {
    const server = await served();
    const dead = await path(server.port);
    const { log } = agent(dead.port);
    const { over } = await watching(log, server);
    dead.freeze();
    const begun = performance.now();
    await expect(over).rejects.toMatchObject({ code: 'link.unreachable' });
    expect(performance.now() - begun).toBeLessThan(3 * 16_000);
  });
});
