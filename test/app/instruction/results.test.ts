import { describe, expect, test } from 'vitest';
import { acknowledging, FakeSession, InstructionWorld, type Process, serverFacts } from '../../support/instruction-rig.js';

const older = () => new FakeSession(serverFacts({}, []));

/** `count` results that no session has seen. */
async function unseen(count: number): Promise<{ world: InstructionWorld; process: Process }> {
  const world = new InstructionWorld();
  const process = await world.start();
  for (let number = 0; number < count; number++) world.script(`s${number}`, `sleep 1 ${number}`);
  process.connect();
  // One lane: they finish in this order.
  for (let number = 0; number < count; number++) {
    process.deliver('RUN_REMOTE_SCRIPT', `t${number}`, { script: `s${number}`, lane: 'x' }, { expiresInMs: 3_600_000 });
  }
  await process.settle();
  process.drop();
  await process.settle(count * 1_000 + 1_000);
  return { world, process };
}

const tags = (count: number, from = 0) => Array.from({ length: count }, (_, number) => `t${number + from}`);

describe('servers that acknowledge', () => {
  test('C4: results are offered on a new stream in order of finishing, 16 at a time, the next ones as acks come', async () => {
    const { process } = await unseen(40);
    const session = process.connect();
    await process.settle();
    expect(session.sent.map(({ tag }) => tag)).toEqual(tags(16));
    process.deliver('RESULT_ACK', 't0');
    process.deliver('RESULT_ACK', 't3');
    await process.settle();
    expect(session.sent.map(({ tag }) => tag)).toEqual(tags(18));
    process.drop();
    const next = process.connect(acknowledging(process));
    await process.settle();
    expect(next.sent.map(({ tag }) => tag)).toEqual(tags(40).filter((tag) => tag !== 't0' && tag !== 't3'));
    expect(process.engine.snapshot().unconfirmed).toBe(0);
  });

  test('C4: offered again after 30 s without an acknowledgement', async () => {
    const { process } = await unseen(1);
    const session = process.connect();
    await process.settle(29_999);
    expect(session.sent).toHaveLength(1);
    await process.settle(1);
    expect(session.sent).toHaveLength(2);
    process.deliver('RESULT_ACK', 't0');
    await process.settle(100_000);
    expect(session.sent).toHaveLength(2);
  });

  test('A9: unacknowledged replies are kept over restarts, for 24 h', async () => {
    const { world, process } = await unseen(2);
    await process.engine.stop();
    const second = await world.start();
    await second.settle();
    const session = second.connect();
    await second.settle();
    expect(session.sent.map(({ tag }) => tag)).toEqual(['t0', 't1']);
    second.drop();
    await second.settle(24 * 3_600_000);
    await second.settle(60_000);
    const later = second.connect();
    await second.settle();
    expect(later.sent).toEqual([]);
    expect(world.disk.dump()).toMatch(/^t0 .*\nt1 /);
  });

  test('A1: no byte of a reply is sent before it is durable', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'echo');
    const process = await world.start();
    const session = process.connect();
    session.onSend = ({ tag }) => {
      const stored = world.disk.rows.get(`fleet-a\n${tag}`);
      expect([stored?.row.state, stored?.reply !== undefined]).toEqual(['finished', true]);
    };
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle();
    expect(session.sent).toHaveLength(1);
  });
});

test('A15b: a result that two connections die of is set aside, an ERROR in its place is confirmed, the others arrive', async () => {
  const { world, process } = await unseen(20);
  const confirmed: string[] = [];
  let deaths = 0;
  for (let turn = 0; turn < 30 && confirmed.length < 20; turn++) {
    const session = new FakeSession();
    session.onSend = ({ tag, type }) => {
      if (session.signal.aborted) return;
      if (tag === 't7' && type !== 'ERROR') {
        deaths += 1;
        process.drop();
        return;
      }
      confirmed.push(tag);
      queueMicrotask(() => process.engine.received(session, { type: 'RESULT_ACK', tag, jsonB64: 'e30=' }));
    };
    process.connect(session);
    await process.settle(1_000);
    process.drop();
  }
  expect(deaths).toBe(2);
  expect([...new Set(confirmed)].sort()).toEqual(tags(20).sort());
  const stored = world.disk.rows.get('fleet-a\nt7');
  expect(stored?.reply).toMatchObject({ type: 'ERROR', jsonB64: expect.stringMatching(/^RESULT_SET_ASIDE: /) });
  expect(stored?.setAside).toMatchObject({ type: 'RUN_REMOTE_SCRIPT_RESPONSE' });
});

describe('servers that do not', () => {
  test('C3: a result counts as delivered when the stream has lived for another 30 s', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'echo');
    const process = await world.start();
    const session = process.connect(older());
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle(29_000);
    expect(world.disk.dump()).toContain(' handed ');
    await process.settle(1_000);
    expect(world.disk.dump()).toContain(' acked ');
    process.drop();
    const next = process.connect(older());
    await process.settle(1_000);
    expect([session.sent.length, next.sent.length]).toEqual([1, 0]);
  });

  test('C3: one that was not is sent once more on the next stream, and then only kept', async () => {
    const world = new InstructionWorld();
    world.script('hello', 'echo');
    const process = await world.start();
    process.connect(older());
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle(5_000);
    process.drop();
    const counts = [];
    for (let turn = 0; turn < 3; turn++) {
      const session = process.connect(older());
      await process.settle(1_000);
      counts.push(session.sent.length);
      process.drop();
    }
    expect(counts).toEqual([1, 0, 0]);
    expect(process.engine.snapshot().unconfirmed).toBe(1);
  });

  test('C3: not when its caller has given up: 60 s after its time', async () => {
    const { process } = await unseen(1);
    // A script that may run for 900 s.
    await process.settle(955_000);
    const late = process.connect(older());
    await process.settle(1_000);
    expect(late.sent).toHaveLength(1);
    const other = await unseen(1);
    await other.process.settle(961_000);
    const tooLate = other.process.connect(older());
    await other.process.settle(1_000);
    expect(tooLate.sent).toEqual([]);
  });

  test('C3: 100 ms apart', async () => {
    const { process } = await unseen(3);
    const session = process.connect(older());
    await process.settle();
    expect(session.sent).toHaveLength(1);
    await process.settle(99);
    expect(session.sent).toHaveLength(1);
    await process.settle(1);
    expect(session.sent).toHaveLength(2);
    await process.settle(100);
    expect(session.sent.map(({ tag }) => tag)).toEqual(['t0', 't1', 't2']);
  });
});
