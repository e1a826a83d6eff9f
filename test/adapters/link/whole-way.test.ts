import { afterAll, expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { GrpcControlLink } from '../../../src/adapters/link/grpc-control-link.js';
import { GrpcNodeServer } from '../../../src/adapters/link/grpc-node-server.js';
import { LinkConnections } from '../../../src/adapters/link/link-connections.js';
import { LinkSubsystem } from '../../../src/app/link/link-subsystem.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeNodeRoles } from '../../fakes/fake-node-roles.js';
import { FakeRegistrations } from '../../fakes/fake-registrations.js';
import { fleetOn, n1, options, tagOf } from '../../support/fleet-rig.js';
import { InstructionWorld } from '../../support/instruction-rig.js';
import { FakeRevocations, judgePeer, nodePair, RecordingCalls, RecordingEnrolment, serverPair } from '../../support/link-rig.js';
import { ThrowawayPki } from '../../support/throwaway-pki.js';

const pki = new ThrowawayPki();
afterAll(() => pki.remove());
const clock = new SystemClock();

/** A control plane and an agent of ours, each with its real end of the wire. */
async function rig() {
  const registrations = new FakeRegistrations();
  registrations.register(n1, 'reg1');
  const fleet = await fleetOn(new FakeControlStore(), clock, { registrations });
  const pair = serverPair(pki);
  const server = new GrpcNodeServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, pair: () => pair, judgePeer, clock, logger: new FakeLogger() },
    ...{ streams: fleet.sessions, calls: new RecordingCalls(), enrolment: new RecordingEnrolment() },
    revocations: new FakeRevocations(),
  });
  await server.start();
  onTestFinished(() => server.stop());
  const world = new InstructionWorld();
  world.script('hello.sh', 'echo hello');
  return { fleet, world, address: { host: 'localhost', port: server.port } };
}

let processes = 0;

/** One life of the agent. */
async function agent({ world, address }: Awaited<ReturnType<typeof rig>>) {
  const { engine, journal } = await world.start({ clock });
  const connections = new LinkConnections({ readPair: async () => nodePair(pki), clock });
  const instance = `i${++processes}`;
  const subsystem = new LinkSubsystem({
    link: new GrpcControlLink({ connections, clock }),
    addresses: [address],
    facts: () => ({
      ...{ instance, boot: 'b1', hardware: 'h1', journal: journal.facts() ?? { id: 'none', counter: 0n } },
      capabilities: new Set(['journal', 'result-ack', 'cancel']),
    }),
    roles: new FakeNodeRoles(),
    users: [engine],
    version: '1.2.3',
    nodeIp: undefined,
    auditHead: () => world.audit.head(),
    newTag: () => crypto.randomUUID(),
    clock,
    bootTime: () => clock.monotonic(),
    random: () => 0,
    logger: new FakeLogger(),
  });
  await subsystem.start();
  const stop = async () => {
    await subsystem.stop();
    await engine.stop();
  };
  onTestFinished(stop);
  return { subsystem, stop };
}

test('an instruction goes to the agent and its result comes back, over the real wire; what was seen is known', async () => {
  const parts = await rig();
  const { fleet, world } = parts;
  await fleet.send({ type: 'RUN_REMOTE_SCRIPT', json: '{"script":"hello.sh"}', tag: tagOf('early') });
  await agent(parts);
  await fleet.send({ type: 'RUN_REMOTE_SCRIPT', json: '{"script":"hello.sh"}', tag: tagOf('late') });
  await expect.poll(() => fleet.book.openCount(), { timeout: 15_000 }).toBe(0);
  for (const tag of ['early', 'late'].map(tagOf)) {
    const { status, reply } = await fleet.instructions.get(n1, tag, options);
    expect(status).toMatchObject({ state: 'done', replyType: 'RUN_REMOTE_SCRIPT_RESPONSE' });
    expect(JSON.parse(Buffer.from(reply?.jsonB64 ?? '', 'base64').toString())).toMatchObject({
      response: 'out of echo hello',
      exitCode: 0,
    });
  }
  expect(world.ran).toEqual(['echo hello', 'echo hello']);
  expect(fleet.presence.get(n1)).toMatchObject({ state: 'online', version: '1.2.3' });
  await expect.poll(() => fleet.presence.get(n1)?.auditHead?.sequence, { timeout: 15_000 }).toBe(world.audit.head()?.sequence);
});

test('a restarted agent is given what it has not answered, and runs nothing twice', async () => {
  const parts = await rig();
  const { fleet, world } = parts;
  const first = await agent(parts);
  await fleet.send({ type: 'RUN_REMOTE_SCRIPT', json: '{"script":"hello.sh"}', tag: tagOf('a') });
  await expect.poll(() => world.ran.length, { timeout: 15_000 }).toBe(1);
  await first.stop();
  await agent(parts);
  await fleet.send({ type: 'GET_NODE_STATUS', tag: tagOf('b') });
  await expect.poll(() => fleet.book.openCount(), { timeout: 15_000 }).toBe(0);
  expect(world.ran).toEqual(['echo hello']);
  expect(fleet.sessions.get(n1)?.epoch).toBe(2n);
});

test('B3: an agent that moves to another connection loses nothing on the way', async () => {
  const parts = await rig();
  const { fleet, world } = parts;
  const { subsystem } = await agent(parts);
  await expect.poll(() => subsystem.state().connected?.server?.epoch, { timeout: 15_000 }).toBe(1n);
  const sends = Array.from({ length: 20 }, (_, i) =>
    fleet.send({ type: 'RUN_REMOTE_SCRIPT', json: '{"script":"hello.sh"}', tag: tagOf(`t${i}`) }),
  );
  await Promise.all([subsystem.moveOver(options), ...sends]);
  await expect.poll(() => fleet.book.openCount(), { timeout: 15_000 }).toBe(0);
  expect(subsystem.state().connected?.server?.epoch).toBe(2n);
  expect(world.ran).toHaveLength(20);
  const states = new Set((await fleet.instructions.list({}, options)).map(({ state, replyType }) => `${state} ${replyType}`));
  expect([...states]).toEqual(['done RUN_REMOTE_SCRIPT_RESPONSE']);
});
