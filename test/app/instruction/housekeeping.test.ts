import { describe, expect, test } from 'vitest';
import { finishedRow } from '../../../src/domain/instruction/row.js';
import { sampleRow } from '../../contract/journal.contract.js';
import { acknowledging, FakeSession, InstructionWorld, serverFacts } from '../../support/instruction-rig.js';

const HOUR = 3_600_000;

async function finishedOne() {
  const world = new InstructionWorld();
  world.script('hello', 'echo');
  const process = await world.start();
  process.connect(acknowledging(process));
  process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
  await process.settle();
  return { world, process };
}

describe('A9: what is kept, and for how long', () => {
  test('the reply an hour after its acknowledgement, the tombstone seven days', async () => {
    const { world, process } = await finishedOne();
    const stored = () => world.disk.rows.get('fleet-a\nt1');
    await process.settle(HOUR - 1);
    expect(stored()?.reply).toBeDefined();
    await process.settle(60_001);
    expect([stored()?.reply, stored()?.row.outcome]).toEqual([undefined, 'done']);
    expect(process.engine.snapshot().instructions).toEqual([]);
    expect(stored()).toBeDefined();
  });

  test('the tombstone seven days, and for 24 h after the expiry whatever its age', async () => {
    const world = new InstructionWorld();
    const now = world.clock.now();
    const week = 7 * 24 * HOUR;
    const ages = {
      old: { receivedAt: now - week - 1, expiresAt: undefined },
      young: { receivedAt: now - week, expiresAt: undefined },
      expired: { receivedAt: now - 2 * week, expiresAt: now - 24 * HOUR - 1 },
      lately: { receivedAt: now - 2 * week, expiresAt: now - 24 * HOUR },
    };
    for (const [tag, facts] of Object.entries(ages)) {
      world.disk.rows.set(`fleet-a\n${tag}`, { row: finishedRow(sampleRow(tag, facts), 'done', facts.receivedAt) });
    }
    const process = await world.start();
    await process.settle();
    expect([...world.disk.rows.values()].map(({ row }) => row.tag)).toEqual(['young', 'lately']);
  });

  test('1,000 replies at most, those that nobody confirmed last', async () => {
    const world = new InstructionWorld();
    for (let number = 0; number < 1_010; number++) {
      const row = finishedRow(sampleRow(`t${number}`), 'done', world.clock.now() + number);
      world.disk.rows.set(`fleet-a\nt${number}`, { row, reply: { type: 'NO_CONTENT', jsonB64: 'e30=' } });
    }
    const process = await world.start();
    await process.settle();
    const kept = [...world.disk.rows.values()].filter(({ reply }) => reply !== undefined).map(({ row }) => row.tag);
    expect([kept.length, kept[0]]).toEqual([1_000, 't10']);
    expect(process.engine.snapshot().unconfirmed).toBe(1_000);
  });
});

describe('folders of tasks', () => {
  test('of an interrupted one and of an unknown one go, one that runs stays', async () => {
    const world = new InstructionWorld();
    world.script('long', 'sleep 100000');
    const first = await world.start();
    first.connect();
    for (const tag of ['t1', 't2']) first.deliver('RUN_REMOTE_SCRIPT', tag, { script: 'long', timeoutSeconds: 3_600 });
    await first.settle();
    await first.engine.stop();
    // The journal is lost, and one of the two has died.
    world.disk.rows.clear();
    const [one, other] = world.tasks.started.map(({ id }) => id);
    if (one === undefined || other === undefined) throw new Error('not started');
    world.tasks.interrupt(one);
    const second = await world.start();
    await second.settle();
    expect(world.tasks.dump()).toBe(`${other} running`);
    await second.settle(2 * HOUR);
    expect(world.tasks.dump()).toBe('');
  });
});

describe('snapshot', () => {
  test('names the journal, counts, and shows what waits for what', async () => {
    const world = new InstructionWorld();
    world.script('long', 'sleep 600');
    world.script('short', 'echo');
    const process = await world.start();
    process.connect(new FakeSession(serverFacts({}, ['result-ack'])));
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'long', lane: 'x' }, { expiresInMs: HOUR });
    process.deliver('RUN_REMOTE_SCRIPT', 't2', { script: 'long', lane: 'x' }, { expiresInMs: HOUR });
    process.deliver('RUN_REMOTE_SCRIPT', 't3', { script: 'short' });
    await process.settle(5_000);
    const at = world.clock.now() - 5_000;
    const common = { type: 'RUN_REMOTE_SCRIPT', receivedAt: at };
    expect(process.engine.snapshot()).toEqual({
      journal: { id: 'journal-1', counter: world.disk.counter },
      waiting: 1,
      running: 1,
      unconfirmed: 1,
      counts: { received: 3, finished_done: 1, audit_missing: 0 },
      instructions: [
        { ...common, tag: 't1', state: 'started', attempt: 1, outcome: undefined, finishedAt: undefined, waitsFor: undefined },
        {
          ...common,
          tag: 't2',
          state: 'received',
          attempt: 0,
          outcome: undefined,
          finishedAt: undefined,
          waitsFor: 'lane script/x',
        },
        { ...common, tag: 't3', state: 'handed', attempt: 1, outcome: 'done', finishedAt: at, waitsFor: undefined },
      ],
    });
  });

  test('without a journal it says so', async () => {
    const world = new InstructionWorld();
    world.disk.full = true;
    const process = await world.start();
    expect(process.engine.snapshot().journal).toBeUndefined();
    expect(process.engine.problems()).toHaveLength(1);
  });
});
