import { randomUUID } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcNodeServer } from '../../../src/adapters/link/grpc-node-server.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { LinkSubsystem } from '../../../src/app/link/link-subsystem.js';
import { heartbeatAnswer, readHeartbeat } from '../../../src/domain/link/heartbeat.js';
import { epoch, HEARTBEAT_TYPE } from '../../../src/domain/link/model.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeNodeRoles } from '../../fakes/fake-node-roles.js';
import { eventually } from '../../support/eventually.js';
import {
  FakeRevocations,
  judgePeer,
  nodePair,
  RecordingCalls,
  RecordingEnrolment,
  RecordingStreams,
  serverFacts,
  serverPair,
} from '../../support/link-rig.js';
import { RecordingUser } from '../../support/link-subsystem-rig.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const pki = new ThrowawayPki();
const server = serverPair(pki);
const clock = new SystemClock();
const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(() => pki.remove());

async function controlPlane(port = 0) {
  const [streams, logger] = [new RecordingStreams(), new FakeLogger()];
  streams.answer = ({ type, tag }, stream) => {
    if (type === HEARTBEAT_TYPE) void stream.send(heartbeatAnswer({ isHealthy: true, message: '' }, tag));
  };
  const [calls, enrolment] = [new RecordingCalls(), new RecordingEnrolment()];
  const revocations = new FakeRevocations();
  const listen = { host: '127.0.0.1', port };
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
  });
  await node.start();
  closers.push(() => node.stop());
  return { streams, node };
}

function agent(port: number) {
  let pair = nodePair(pki);
  const connections = new LinkConnections({ readPair: async () => pair, clock });
  const user = new RecordingUser();
  const subsystem = new LinkSubsystem({
    link: new GrpcControlLink({ connections, clock }),
    addresses: [{ host: 'localhost', port }],
    facts: () => ({ instance: 'i', boot: 'b', hardware: 'h', journal: { id: 'j', counter: 1n }, capabilities: new Set() }),
    roles: new FakeNodeRoles(),
    users: [user],
    version: '1.0.0',
    nodeIp: undefined,
    auditHead: () => undefined,
    newTag: () => randomUUID(),
    clock,
    bootTime: () => clock.monotonic(),
    random: () => 0.01,
    logger: new FakeLogger(),
  });
  closers.push(() => subsystem.stop());
  const renew = () => {
    pair = nodePair(pki, 'n2');
  };
  return { subsystem, user, renew };
}

/** A path that a test can cut without either end being told. */
async function path(port: number) {
  const sockets = new Set<Socket>();
  const relay: Server = createServer((inward) => {
    const outward = connect({ host: '127.0.0.1', port });
    for (const socket of [inward, outward]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    inward.pipe(outward).pipe(inward);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  });
  const address = relay.address();
  const cut = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return { port: typeof address === 'object' && address !== null ? address.port : 0, cut };
}

describe('the link over the network', () => {
  test('opens, and its heartbeats say where it comes from', async () => {
    const { streams, node } = await controlPlane();
    const { subsystem, user } = agent(node.port);
    await subsystem.start();
    await eventually(() => user.told).toEqual(['opened 3']);
    const beat = readHeartbeat(streams.newest.received[0]?.jsonB64 ?? '');
    expect(beat).toMatchObject({ externalIpAddress: '127.0.0.1', status: 'not_installed', rolesKnown: true });
    expect(subsystem.problems()).toEqual([]);
  });

  test('comes back to a server that was restarted', async () => {
    const { node } = await controlPlane();
    const { port } = node;
    const { subsystem, user } = agent(port);
    await subsystem.start();
    await eventually(() => user.told).toEqual(['opened 3']);
    await node.stop();
    await eventually(() => user.told.at(-1)).toBe('closed 3');
    await controlPlane(port);
    await expect.poll(() => user.told.at(-1), { timeout: 15_000 }).toBe('opened 3');
    expect(subsystem.state().streams).toBeGreaterThan(1);
  });

  test('F5: moves to a new certificate and loses nothing', async () => {
    const { streams, node } = await controlPlane();
    const { subsystem, user, renew } = agent(node.port);
    await subsystem.start();
    await eventually(() => user.told).toEqual(['opened 3']);
    renew();
    streams.facts = { ...serverFacts, epoch: epoch(4n) };
    await subsystem.moveOver({ signal: AbortSignal.timeout(10_000) });
    expect(user.told).toEqual(['opened 3', 'closed 3', 'opened 4']);
    expect(streams.seen.map(({ stream }) => stream.node.identity.nid)).toEqual(['n1', 'n2']);
    void streams.newest.stream.send({ type: 'X', tag: 'a', jsonB64: '' });
    await eventually(() => user.told.at(-1)).toBe('received X a');
    await eventually(() => node.counts().connections?.open).toBe(1);
  });

  test('C6: a path that dies without a word is noticed after 12 s, and then soon', { timeout: 90_000 }, async () => {
    const { node } = await controlPlane();
    const { port, cut } = await path(node.port);
    const { subsystem, user } = agent(port);
    await subsystem.start();
    await eventually(() => user.told).toEqual(['opened 3']);
    const cutAt = clock.monotonic();
    cut();
    await expect.poll(() => user.told.at(1), { timeout: 75_000, interval: 50 }).toBe('closed 3');
    const tookMs = clock.monotonic() - cutAt;
    expect(tookMs).toBeGreaterThan(11_000);
    // Five times the 15 s that are promised, for a machine that has other things to do; a fake clock sees them exactly.
    expect(tookMs).toBeLessThan(75_000);
    expect(subsystem.state().lastError?.error.message).toContain('nothing came for 12 s');
    // The dead connection is not used again.
    await expect.poll(() => user.told.at(-1), { timeout: 15_000 }).toBe('opened 3');
  });
});
