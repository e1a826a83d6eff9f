import { describe, expect, test } from 'vitest';
import { finishedRow, type Row, startedRow } from '../../../src/domain/instruction/row.js';
import type { Epoch } from '../../../src/domain/link/model.js';
import { sampleRow } from '../../contract/journal.contract.js';
import { FakeTaskRunner } from '../../fakes/fake-task-runner.js';
import {
  acknowledging,
  base64,
  contentOf,
  FakeSession,
  InstructionWorld,
  serverFacts,
  sha256,
} from '../../support/instruction-rig.js';

const page = { url: 'https://a.test/', method: 'POST' };

/** What an earlier process has left in the journal. */
function left(world: InstructionWorld, tag: string, facts: Partial<Row>, payload?: unknown): void {
  const row = { ...sampleRow(tag, { lanes: [], expiresAt: undefined, task: undefined }), ...facts };
  world.disk.rows.set(`${row.fleet}\n${tag}`, { row, ...(payload === undefined ? {} : { payload: base64(payload) }) });
}

const web = { type: 'RUN_WEB_REQUEST', digest: sha256(`RUN_WEB_REQUEST\n${sha256(base64(page))}`) };

function leftStarted(world: InstructionWorld, tag: string, facts: Partial<Row>, payload?: unknown): void {
  const { state, attempt } = startedRow(sampleRow(tag));
  left(world, tag, { state, attempt, ...facts }, payload);
}

describe('A6: what was only received', () => {
  test('stays in the journal until its own fleet is there, then it is given back or answered', async () => {
    const world = new InstructionWorld();
    left(world, 't1', web);
    left(world, 't2', { ...web, fleet: 'fleet-b' });
    const process = await world.start();
    process.connect(new FakeSession(serverFacts({ fleet: 'fleet-c' })));
    await process.settle();
    expect(world.disk.dump()).toBe('t1 RUN_WEB_REQUEST received 0 -\nt2 RUN_WEB_REQUEST received 0 -');
    process.drop();
    process.connect(new FakeSession(serverFacts()));
    await process.settle();
    expect(world.disk.dump()).toBe('t2 RUN_WEB_REQUEST received 0 -');
    process.drop();
    const old = process.connect(new FakeSession(serverFacts({ fleet: 'fleet-b' }, [])));
    await process.settle();
    expect(old.dump()).toBe('t2 ERROR NOT_STARTED: the agent was restarted before it began; nothing was done');
  });

  test('is delivered again as if it had never been seen', async () => {
    const world = new InstructionWorld();
    world.web.serve('https://a.test/', 'page');
    left(world, 't1', web);
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('RUN_WEB_REQUEST', 't1', page);
    await process.settle();
    expect(session.sent.map(({ type }) => type)).toEqual(['RUN_WEB_REQUEST']);
    expect(world.disk.dump()).toBe('t1 RUN_WEB_REQUEST acked 1 done');
    expect(world.web.taken()).toHaveLength(1);
  });

  test('A10: its tag is not free for another instruction', async () => {
    const world = new InstructionWorld();
    left(world, 't1', web);
    const process = await world.start();
    const session = process.connect(new FakeSession(serverFacts({}, ['result-ack'])));
    process.deliver('RUN_WEB_REQUEST', 't1', { ...page, postData: 'other' });
    await process.settle();
    expect(session.sent.map(contentOf).some((text) => text.startsWith('TAG_REUSED'))).toBe(true);
    expect(world.web.taken()).toEqual([]);
  });
});

describe('A5, A7: what was started', () => {
  test('is taken up in the order of its receipt', async () => {
    const world = new InstructionWorld();
    for (const name of ['a', 'b', 'c']) world.script(name, name);
    for (const name of ['a', 'b', 'c']) {
      leftStarted(
        world,
        `t-${name}`,
        { repeat: 'repeat', lanes: ['script/x'], task: sha256(`fleet-a\nt-${name}`) },
        { script: name, lane: 'x', repeatable: true },
      );
    }
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    await process.settle();
    expect(world.ran).toEqual(['a', 'b', 'c']);
    expect(session.sent.map(({ tag }) => tag)).toEqual(['t-a', 't-b', 't-c']);
    expect(world.disk.dump()).toBe(['a', 'b', 'c'].map((name) => `t-${name} RUN_REMOTE_SCRIPT acked 2 done`).join('\n'));
  });

  const HOURS_2 = 7_200_000;
  test.each([
    { name: 'set two hours ahead, in time', step: HOURS_2, leftMs: 1, boot: 'boot-1', state: 'acked 2 done' },
    { name: 'set two hours back, in time', step: -HOURS_2, leftMs: 1, boot: 'boot-1', state: 'acked 2 done' },
    { name: 'set two hours ahead, too late', step: HOURS_2, leftMs: 0, boot: 'boot-1', state: '' },
    { name: 'set two hours back, too late', step: -HOURS_2, leftMs: 0, boot: 'boot-1', state: '' },
    { name: 'of a machine that has started anew', step: HOURS_2, leftMs: 1, boot: 'boot-2', state: '' },
  ])('A11: its time is counted on the boot-time clock: a wall clock $name', async ({ step, leftMs, boot, state }) => {
    const world = new InstructionWorld();
    world.script('a', 'a');
    world.sleptMs = 90_000;
    const receivedAt = world.clock.now() - 10;
    const times = { boot: 'boot-1', receivedAt, expiresAt: receivedAt + 60_000, expiresAtBoot: world.sleptMs + leftMs };
    const facts = { repeat: 'repeat', lanes: [], task: sha256('fleet-a\nt1'), ...times } as const;
    leftStarted(world, 't1', facts, { script: 'a', repeatable: true });
    world.clock.setWall(world.clock.now() + step);
    world.boot = boot;
    const process = await world.start();
    process.connect(acknowledging(process));
    await process.settle();
    // What had no effect is given back: its server knows that its time is over.
    expect(world.disk.dump()).toBe(state === '' ? '' : `t1 RUN_REMOTE_SCRIPT ${state}`);
    expect(world.ran).toEqual(state !== '' ? ['a'] : []);
  });

  test.each<[string, Partial<Row>, unknown]>([
    ['without its payload', { repeat: 'repeat' }, undefined],
    ['with a payload that this version does not understand', { repeat: 'repeat' }, { script: '..' }],
    ['of a type that this version does not have', { repeat: 'repeat', type: 'APPLY_CR' }, {}],
    ['of a type that this version does not know', { repeat: 'repeat', type: 'MAKE_COFFEE' }, {}],
    ['that runs once', {}, undefined],
  ])('one %s is interrupted', async (_, facts, payload) => {
    const world = new InstructionWorld();
    leftStarted(world, 't1', facts, payload);
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([expect.stringMatching(/^INTERRUPTED: it was started; /)]);
    expect(world.disk.dump()).toMatch(/ acked 1 unknown$/);
    expect(world.audit.dump()).toMatch(/^outcome unknown \w+ t1 server:s1@3$/);
  });

  test('the answer is written when nothing of it runs any more', async () => {
    const world = new InstructionWorld();
    const seen: string[] = [];
    class Watched extends FakeTaskRunner {
      override async cancel(...args: Parameters<FakeTaskRunner['cancel']>): Promise<void> {
        seen.push(world.disk.dump());
        return super.cancel(...args);
      }
    }
    const tasks = new Watched({}, world.clock);
    world.script('hello', 'x');
    tasks.install('/bin/bash', () => new Promise(() => {}));
    const first = await world.start({ tasks });
    first.connect();
    first.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await first.settle();
    await first.engine.stop();
    for (const { id } of tasks.started) tasks.interrupt(id);
    await world.start({ tasks });
    expect(seen).toEqual(['t1 RUN_REMOTE_SCRIPT started 1 -']);
    expect(world.disk.dump()).toBe('t1 RUN_REMOTE_SCRIPT finished 1 unknown');
  });

  test('a runner that cannot be asked is waited for, and its error is the answer', async () => {
    const world = new InstructionWorld();
    class Broken extends FakeTaskRunner {
      override state(): Promise<never> {
        return Promise.reject(new Error('EIO'));
      }
    }
    leftStarted(world, 't1', { task: sha256('fleet-a\nt1') });
    const process = await world.start({ tasks: new Broken({}, world.clock) });
    const session = process.connect(acknowledging(process));
    await process.settle();
    expect(session.sent.map(contentOf)).toEqual([expect.stringMatching(/^instruction.not_started: /)]);
  });
});

test('results come first in the order in which they were finished, tombstones are not offered', async () => {
  const world = new InstructionWorld();
  const ends = { t1: 300, t2: 200, t3: 100 };
  for (const [tag, ago] of Object.entries(ends)) {
    const row = finishedRow(sampleRow(tag), 'done', world.clock.now() - 1_000 - ago);
    world.disk.rows.set(`fleet-a\n${tag}`, { row, ...(tag === 't2' ? {} : { reply: { type: 'NO_CONTENT', jsonB64: 'e30=' } }) });
  }
  leftStarted(world, 't0', {});
  world.disk.rows.set('fleet-a\nlast', {
    row: finishedRow(sampleRow('last'), 'done', world.clock.now() - 1_200),
    reply: { type: 'NO_CONTENT', jsonB64: 'e30=' },
  });
  const process = await world.start();
  const session = process.connect(acknowledging(process));
  await process.settle();
  // t1 ended first, then the one that was received last; what this start has ended comes after them.
  expect(session.sent.map(({ tag }) => tag)).toEqual(['t1', 'last', 't3', 't0']);
});

test('B3: the highest epoch that is known stays, whatever the journal says later', async () => {
  const world = new InstructionWorld();
  world.disk.full = true;
  const process = await world.start();
  process.connect(new FakeSession(serverFacts({ epoch: 9n as Epoch })));
  await process.settle();
  world.disk.epochs.set('fleet-a', 5n as Epoch);
  world.disk.full = false;
  await process.settle(11_000);
  process.deliver('GET_NODE_STATUS', 't1', {}, { epoch: 8n as Epoch });
  await process.settle();
  expect(process.engine.snapshot().counts).toMatchObject({ fenced: 1 });
});
