import { describe, expect, test } from 'vitest';
import { FakeJournal } from '../../fakes/fake-journal.js';
import { acknowledging, contentOf, InstructionWorld } from '../../support/instruction-rig.js';

const page = { url: 'https://a.test/', method: 'POST' };

async function served() {
  const world = new InstructionWorld();
  world.web.serve('https://a.test/', 'page');
  const process = await world.start();
  const session = process.connect(acknowledging(process));
  return { world, process, session };
}

describe('the journal is full', () => {
  test('K: what has effects is refused in its own form, reads are answered, and it goes on by itself', async () => {
    const { world, process, session } = await served();
    world.disk.full = true;
    process.deliver('RUN_WEB_REQUEST', 't1', page);
    process.deliver('GET_NODE_STATUS', 't2');
    process.deliver('RUN_WEB_REQUEST', 't3', { url: 'https://a.test/' });
    process.deliver('UPGRADE_NODE_K8S', 't4');
    process.deliver('VIP_ASSIGN', 't5');
    await process.settle();
    expect(session.of('t1').map(contentOf)).toEqual([
      expect.stringMatching(/^JOURNAL_UNAVAILABLE: .*no space left on device; nothing was done$/),
    ]);
    expect(session.of('t2').map(({ type }) => type)).toEqual(['NODE_STATUS']);
    expect(session.of('t3').map(({ type }) => type)).toEqual(['RUN_WEB_REQUEST']);
    expect(session.of('t4').map(contentOf)).toEqual([expect.stringContaining('"success":false,"message":"JOURNAL_UNAVAILABLE')]);
    expect(session.of('t5')).toEqual([]);
    expect(world.web.taken().map(({ method }) => method)).toEqual(['GET']);
    expect(process.engine.problems()).toHaveLength(1);
    world.disk.full = false;
    process.deliver('RUN_WEB_REQUEST', 't6', page);
    await process.settle();
    expect(session.of('t6').map(({ type }) => type)).toEqual(['RUN_WEB_REQUEST']);
    expect(process.engine.problems()).toEqual([]);
  });

  test('K: at the second commit: nothing was done', async () => {
    const { world, process, session } = await served();
    process.journal.cut(([change]) => {
      if (change?.change === 'row' && change.row.state === 'received') queueMicrotask(() => (world.disk.full = true));
      return undefined;
    });
    process.deliver('RUN_WEB_REQUEST', 't1', page);
    await process.settle();
    expect(session.of('t1').map(contentOf)).toEqual([expect.stringMatching(/^JOURNAL_UNAVAILABLE: /)]);
    expect(world.web.taken()).toEqual([]);
  });

  test('K: a finished result is kept in memory, sent, answers repeats, and is written when there is room', async () => {
    const { world, process, session } = await served();
    world.script('hello', 'sleep 10');
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle(1_000);
    world.disk.full = true;
    await process.settle(10_000);
    expect(session.of('t1').map(contentOf)).toEqual([expect.stringContaining('out of sleep 10')]);
    expect(world.disk.dump()).toBe('t1 RUN_REMOTE_SCRIPT started 1 -');
    world.disk.full = false;
    await process.settle(61_000);
    expect(world.disk.dump()).toMatch(/^t1 RUN_REMOTE_SCRIPT (finished|acked) 1 done$/);
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
    await process.settle();
    expect(session.of('t1')).toHaveLength(2);
    expect(world.ran).toHaveLength(1);
  });

  test('K: an agent without a journal starts, answers reads, and takes effects as soon as there is one', async () => {
    const world = new InstructionWorld();
    world.web.serve('https://a.test/', 'page');
    world.disk.full = true;
    const process = await world.start();
    const session = process.connect();
    process.deliver('GET_NODE_STATUS', 't1');
    process.deliver('RUN_WEB_REQUEST', 't2', page);
    await process.settle();
    expect(session.sent.map(({ type }) => type)).toEqual(['NODE_STATUS', 'ERROR']);
    world.disk.full = false;
    await process.settle(10_000);
    process.deliver('RUN_WEB_REQUEST', 't3', page);
    await process.settle();
    expect(session.of('t3').map(({ type }) => type)).toEqual(['RUN_WEB_REQUEST']);
  });
});

test('D3: a journal that does not come back leaves no heap of instructions behind', async () => {
  const world = new InstructionWorld();
  class Stuck extends FakeJournal {
    override find(): Promise<never> {
      return new Promise(() => {});
    }
  }
  const process = await world.start({ journal: new Stuck(world.disk) });
  const session = process.connect();
  process.deliver('RUN_WEB_REQUEST', 'first', page);
  await process.settle();
  for (let number = 0; number < 1_001; number++) process.deliver('RUN_WEB_REQUEST', `t${number}`, page);
  process.deliver('GET_NODE_STATUS', 'read');
  await process.settle();
  expect(session.dump()).toBe('t1000 ERROR QUEUE_FULL: the journal, 1000 waiting\nread NODE_STATUS {"nodeIsReady":true}');
});

describe('the audit log', () => {
  test('A3, H1: a decision line beside received, an outcome line with finished; payloads only as digests', async () => {
    const { world, process } = await served();
    process.deliver('RUN_WEB_REQUEST', 't1', page);
    process.deliver('REINSTALL_NODE', 't2', { reinstallCommand: 'secret' });
    process.deliver('GET_NODE_STATUS', 't3');
    await process.settle();
    const lines = world.audit.dump().split('\n');
    for (const tag of ['t1', 't2', 't3']) {
      expect(lines.filter((line) => line.includes(` ${tag} `)).map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual(
        tag === 't2' ? ['decision refused', 'outcome refused'] : ['decision allowed', 'outcome done'],
      );
    }
    expect(world.audit.records.every(({ who }) => who === 'server:s1@1')).toBe(true);
    expect(world.audit.records.find(({ tag }) => tag === 't2')?.rule).toBe('instructions.deny: REINSTALL_NODE');
    expect(JSON.stringify(world.audit.records)).not.toContain('secret');
  });

  test('H3: a line that cannot be written refuses everything but reads', async () => {
    const { world, process, session } = await served();
    world.audit.fill();
    process.deliver('RUN_WEB_REQUEST', 't1', page);
    process.deliver('GET_NODE_STATUS', 't2');
    await process.settle();
    expect(session.of('t1').map(contentOf)).toEqual([
      expect.stringMatching(/^AUDIT_UNAVAILABLE: .*no space left on device; nothing was done$/),
    ]);
    expect(session.of('t2').map(({ type }) => type)).toEqual(['NODE_STATUS']);
    expect(world.web.taken()).toEqual([]);
    expect(world.disk.dump()).toBe('t1 RUN_WEB_REQUEST acked 0 refused');
  });

  test('H3: or it goes on with a counter', async () => {
    const world = new InstructionWorld();
    world.web.serve('https://a.test/', 'page');
    const process = await world.start({ onAuditFailure: 'continue' });
    const session = process.connect(acknowledging(process));
    world.audit.fill();
    process.deliver('RUN_WEB_REQUEST', 't1', page);
    await process.settle();
    expect(session.of('t1').map(({ type }) => type)).toEqual(['RUN_WEB_REQUEST']);
    expect(process.engine.snapshot().counts).toMatchObject({ audit_missing: 2 });
  });
});

test('the policy is asked for each instruction, and its rule is named', async () => {
  const world = new InstructionWorld();
  for (const name of ['good', 'bad']) world.script(name, name);
  const policy = { allow: undefined, deny: [], scripts: { allow: ['good*'], deny: [] }, kubectl: { allow: undefined, deny: [] } };
  const process = await world.start({ policy: () => policy });
  const session = process.connect(acknowledging(process));
  process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'good' });
  process.deliver('RUN_REMOTE_SCRIPT', 't2', { script: 'bad' });
  await process.settle();
  expect(session.of('t1').map(contentOf)).toEqual([expect.stringContaining('out of good')]);
  expect(session.of('t2').map(contentOf)).toEqual([
    "DENIED: this node's policy does not allow it: instructions.scripts.allow does not name bad",
  ]);
  expect(world.ran).toEqual(['good']);
});

test('stop is safe before a start and twice', async () => {
  const world = new InstructionWorld();
  const process = await world.start();
  await process.engine.stop();
  await process.engine.stop();
});
