import { describe, expect, test } from 'vitest';
import type { Epoch } from '../../../src/domain/link/model.js';
import { acknowledging, contentOf, FakeSession, InstructionWorld, serverFacts } from '../../support/instruction-rig.js';

const epoch = (value: bigint) => value as Epoch;

describe('what is never answered', () => {
  test.each([
    ...['', 'ERROR', 'NO_CONTENT', 'RESULT_ACK', 'NODE_STATUS', 'NODE_VPN_PEER', 'CLUSTER_JOIN_CMD', 'RESTART_SCHEDULED'],
    ...['RUN_REMOTE_SCRIPT_RESPONSE', 'AmIVIPHolderResponse', 'INSTALL_HELM_CHART_ERROR', 'NodeAgentHeartbeatToServer'],
  ])('C2: %j', async (type) => {
    const process = await new InstructionWorld().start();
    const session = process.connect();
    process.deliver(type, 't1');
    await process.settle();
    expect(session.sent).toEqual([]);
  });

  test('C2: what comes back under a tag of our own, for ten minutes', async () => {
    const process = await new InstructionWorld().start();
    const session = process.connect();
    process.engine.ownTag('mine');
    process.deliver('GET_NODE_STATUS', 'mine');
    await process.settle(599_000);
    process.deliver('SOMETHING', 'mine');
    await process.settle();
    expect(session.sent).toEqual([]);
    expect(process.engine.snapshot().counts).toMatchObject({ unanswered: 2 });
    await process.settle(2_000);
    process.deliver('GET_NODE_STATUS', 'mine');
    await process.settle();
    expect(session.dump()).toBe('mine NODE_STATUS {"nodeIsReady":true}');
  });

  test('C1: an acknowledgement of what has no result changes nothing', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'sleep 10');
    const process = await world.start();
    const session = process.connect();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle(1_000);
    process.deliver('RESULT_ACK', 't1');
    process.deliver('RESULT_ACK', 't2');
    await process.settle(10_000);
    expect(session.of('t1')).toHaveLength(1);
    expect(process.engine.snapshot().counts).toMatchObject({ ack_of_nothing: 2 });
    process.deliver('RESULT_ACK', 't1');
    await process.settle();
    expect(world.disk.dump()).toBe('t1 RUN_REMOTE_SCRIPT acked 1 done');
  });

  test('an unknown type of request is an ERROR; sessions and the link have types of their own', async () => {
    const process = await new InstructionWorld().start();
    const session = process.connect();
    process.deliver('MAKE_COFFEE', 't1');
    await process.settle();
    expect(session.dump()).toBe('t1 ERROR UNKNOWN_TYPE: this agent knows no MAKE_COFFEE');
    for (const type of ['OPEN_STREAM', 'STREAM_DATA', 'STREAM_RESIZE', 'STREAM_CLOSE', 'DRAINING']) {
      expect(process.engine.received(session, { type, tag: 't2', jsonB64: '' })).toBe(false);
    }
  });
});

describe('types that are not built', () => {
  test.each([['REINSTALL_NODE', "ERROR DENIED: this node's policy does not allow it: instructions.deny: REINSTALL_NODE"]])(
    '%s fails in its own form, and finally',
    async (type, answer) => {
      const world = new InstructionWorld();
      const process = await world.start();
      const session = process.connect(acknowledging(process));
      process.deliver(type, 't1');
      await process.settle();
      expect(session.dump()).toBe(`t1 ${answer}`);
      expect(world.disk.dump()).toBe(`t1 ${type} acked 0 refused`);
    },
  );
});

describe('fencing', () => {
  test('B3: an instruction with an epoch below the highest is dropped and counted, also after a restart', async () => {
    const world = new InstructionWorld();
    const first = await world.start();
    const session = first.connect(new FakeSession(serverFacts({ epoch: epoch(5n) })));
    first.deliver('GET_NODE_STATUS', 't1', {}, { epoch: epoch(4n) });
    first.deliver('GET_NODE_STATUS', 't2', {}, { epoch: epoch(5n) });
    first.deliver('GET_NODE_STATUS', 't3', {}, { epoch: epoch(7n) });
    first.deliver('GET_NODE_STATUS', 't4');
    await first.settle();
    expect(session.sent.map(({ tag }) => tag)).toEqual(['t2', 't3']);
    expect(first.engine.snapshot().counts).toMatchObject({ fenced: 2 });
    await first.engine.stop();
    const second = await world.start();
    const later = second.connect(new FakeSession(serverFacts({ epoch: epoch(6n) })));
    second.deliver('GET_NODE_STATUS', 't5');
    await second.settle();
    expect(later.sent).toEqual([]);
    // Another fleet counts for itself.
    const other = second.connect(new FakeSession(serverFacts({ fleet: 'fleet-b', epoch: epoch(1n) })));
    second.deliver('GET_NODE_STATUS', 't5');
    await second.settle();
    expect(other.sent.map(({ tag }) => tag)).toEqual(['t5']);
  });

  test('B3: messages of an older stream are dropped before they are decoded', async () => {
    const process = await new InstructionWorld().start();
    const old = process.connect();
    const current = process.connect();
    expect(process.engine.received(old, { type: 'GET_NODE_STATUS', tag: 't1', jsonB64: 'e30=' })).toBe(true);
    await process.settle();
    expect([...old.sent, ...current.sent]).toEqual([]);
    expect(process.engine.snapshot().counts).toMatchObject({ stale: 1 });
  });

  test('A13: two fleets never share tags; an older server is known by its root', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'echo');
    const process = await world.start();
    for (const server of [serverFacts(), serverFacts({ fleet: 'fleet-b' }), 'older' as const]) {
      const session = process.connect(new FakeSession(server));
      process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
      await process.settle();
      expect(session.sent.map(contentOf)).toEqual([expect.stringContaining('out of echo')]);
      process.drop();
    }
    expect([...world.disk.rows.keys()]).toEqual(['fleet-a\nt1', 'fleet-b\nt1', 'root-1\nt1']);
    expect(world.ran).toHaveLength(3);
    expect(world.audit.records.map(({ who }) => who)).toContain('server:older');
  });
});
