import { describe, expect, test } from 'vitest';
import { acknowledging, contentOf, FakeSession, InstructionWorld, serverFacts } from '../../support/instruction-rig.js';

const HOUR = 3_600_000;
const long = { expiresInMs: HOUR };

test('D2: five scripts of 600 s run, and short reads are answered at once', async () => {
  const world = new InstructionWorld();
  world.script('long', 'sleep 600');
  world.web.serve('https://a.test/', 'page');
  const process = await world.start();
  const session = process.connect();
  for (let number = 0; number < 6; number++) process.deliver('RUN_REMOTE_SCRIPT', `s${number}`, { script: 'long' }, long);
  await process.settle(1_000);
  expect(process.engine.snapshot()).toMatchObject({ running: 5, waiting: 1 });
  expect(process.engine.snapshot().instructions.find(({ tag }) => tag === 's5')?.waitsFor).toBe('a free script slot');
  const before = world.clock.monotonic();
  process.deliver('GET_NODE_STATUS', 'r1');
  process.deliver('RUN_WEB_REQUEST', 'r2', { url: 'https://a.test/' });
  process.deliver('RUN_WEB_REQUEST', 'w1', { url: 'https://a.test/', method: 'POST' });
  await process.settle();
  expect(session.sent.map(({ tag }) => tag).sort()).toEqual(['r1', 'r2', 'w1']);
  expect(world.clock.monotonic()).toBe(before);
  await process.settle(1_200_000);
  expect(world.ran).toHaveLength(6);
});

test('D1: 1,000 pairs in one lane each keep the order of their arrival', async () => {
  const world = new InstructionWorld();
  const process = await world.start();
  process.connect(acknowledging(process));
  for (let pair = 0; pair < 1_000; pair++) {
    for (const half of ['a', 'b']) world.script(`${pair}${half}`, `${pair} ${half}`);
    process.deliver('RUN_REMOTE_SCRIPT', `${pair}a`, { script: `${pair}a`, lane: `l${pair % 7}` }, long);
    process.deliver('RUN_REMOTE_SCRIPT', `${pair}b`, { script: `${pair}b`, lane: `l${pair % 7}` }, long);
    if (pair % 50 === 49) await process.settle();
  }
  await process.settle();
  expect(world.ran).toHaveLength(2_000);
  for (let lane = 0; lane < 7; lane++) {
    const inLane = world.ran.filter((text) => Number.parseInt(text, 10) % 7 === lane);
    const expected = Array.from({ length: 1_000 }, (_, pair) => pair).filter((pair) => pair % 7 === lane);
    expect(inLane).toEqual(expected.flatMap((pair) => [`${pair} a`, `${pair} b`]));
  }
});

test('D3: a full lane refuses with its name and number, and the tag is final', async () => {
  const world = new InstructionWorld();
  world.script('long', 'sleep 600');
  world.script('short', 'echo');
  const process = await world.start();
  const session = process.connect();
  for (let number = 0; number < 65; number++)
    process.deliver('RUN_REMOTE_SCRIPT', `t${number}`, { script: 'long', lane: 'x' }, long);
  process.deliver('RUN_REMOTE_SCRIPT', 'over', { script: 'short', lane: 'x' }, long);
  process.deliver('RUN_REMOTE_SCRIPT', 'other', { script: 'short', lane: 'y' }, long);
  await process.settle();
  expect(session.of('over').map(contentOf)).toEqual(['QUEUE_FULL: script/x, 64 waiting']);
  expect(session.of('other')).toHaveLength(1);
  expect(world.disk.dump()).toContain('over RUN_REMOTE_SCRIPT handed 0 refused');
});

describe('expiry', () => {
  const waiting = async (facts: { expiresInMs?: number }, payload: object) => {
    const world = new InstructionWorld();
    world.script('long', 'sleep 600');
    world.web.silence('https://a.test/');
    const process = await world.start();
    const session = process.connect(new FakeSession(serverFacts({}, [])));
    process.deliver('RUN_REMOTE_SCRIPT', 'first', { script: 'long', lane: 'x' }, long);
    await process.settle();
    process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'long', lane: 'x', ...payload }, facts);
    await process.settle();
    return { process, session, world };
  };

  test('A11: not started after its time, which counts from the receipt', async () => {
    const { process, session, world } = await waiting({ expiresInMs: 90_000 }, {});
    await process.settle(89_999);
    expect(session.sent).toEqual([]);
    await process.settle(1);
    expect(session.dump()).toBe('t1 ERROR EXPIRED: not started');
    await process.settle(HOUR);
    expect(world.ran).toEqual(['sleep 600']);
  });

  test.each([
    ['ahead', 2 * HOUR],
    ['back', -2 * HOUR],
  ])('A11: a wall clock that is set two hours %s changes nothing', async (_, step) => {
    const { process, session, world } = await waiting({ expiresInMs: 90_000 }, {});
    world.clock.setWall(world.clock.now() + step);
    await process.settle(89_999);
    expect(session.sent).toEqual([]);
    await process.settle(1);
    expect(session.dump()).toBe('t1 ERROR EXPIRED: not started');
    expect(world.ran).toEqual(['sleep 600']);
  });

  test('A11: the sleep of the machine counts', async () => {
    const { process, session, world } = await waiting({ expiresInMs: 2 * HOUR }, {});
    world.sleptMs = 2 * HOUR;
    // The one before it ends, and its turn has come.
    await process.settle(600_000);
    expect(session.dump()).toContain('t1 ERROR EXPIRED: not started');
    expect(world.ran).toEqual(['sleep 600']);
  });

  test('A11: a script of a server that gives no time waits as long as it may run', async () => {
    const { process, session } = await waiting({}, { timeoutSeconds: 100 });
    await process.settle(99_999);
    expect(session.sent).toEqual([]);
    await process.settle(1);
    expect(session.dump()).toBe('t1 ERROR BUSY: waited behind lane script/x; not started');
  });

  test('A11: everything else 25 s', async () => {
    const world = new InstructionWorld();
    for (let number = 0; number < 9; number++) world.web.silence(`https://a.test/${number}`);
    const process = await world.start();
    const session = process.connect(new FakeSession(serverFacts({}, [])));
    for (let number = 0; number < 9; number++) {
      process.deliver('RUN_WEB_REQUEST', `t${number}`, { url: `https://a.test/${number}`, method: 'POST' });
    }
    await process.settle(24_999);
    expect(session.sent).toEqual([]);
    await process.settle(1);
    expect(session.dump()).toBe('t8 ERROR BUSY: waited behind a free work slot; not started');
    // Those that run have 30 s.
    await process.settle(5_000);
    expect(session.sent).toHaveLength(9);
    expect(session.of('t0').map(contentOf)).toEqual(['instruction.timed_out: it took longer than 30000 ms']);
  });
});

describe('cancel', () => {
  const running = async () => {
    const world = new InstructionWorld();
    world.script('long', 'sleep 600');
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    for (const tag of ['t1', 't2']) process.deliver('RUN_REMOTE_SCRIPT', tag, { script: 'long', lane: 'x' }, long);
    await process.settle(1_000);
    return { world, process, session };
  };

  test('A17: one that waits is not started', async () => {
    const { world, process, session } = await running();
    process.deliver('CANCEL', 'c1', { tag: 't2' });
    await process.settle();
    expect(session.dump()).toBe('t2 ERROR CANCELLED: not started\nc1 NO_CONTENT {}');
    await process.settle(600_000);
    expect(world.ran).toHaveLength(1);
    expect(world.disk.dump()).toContain('t2 RUN_REMOTE_SCRIPT acked 0 cancelled');
  });

  test('A17: one that runs is killed, and may have taken effect', async () => {
    const { world, process, session } = await running();
    process.deliver('CANCEL', 'c1', { tag: 't1' });
    await process.settle();
    expect(session.of('t1').map(contentOf)).toEqual(['CANCELLED: may have taken effect']);
    expect(session.of('c1')).toHaveLength(1);
    expect(world.disk.dump()).toContain('t1 RUN_REMOTE_SCRIPT acked 1 cancelled');
    // The lane goes on.
    expect(world.ran).toHaveLength(2);
  });

  test('A17: one that is still fetched is not run', async () => {
    const world = new InstructionWorld();
    world.web.silence('https://a.test/');
    const process = await world.start();
    const session = process.connect(acknowledging(process));
    process.deliver('RUN_WEB_REQUEST', 't1', { url: 'https://a.test/', method: 'POST' });
    await process.settle();
    process.deliver('CANCEL', 'c1', { tag: 't1' });
    await process.settle();
    expect(session.of('t1').map(contentOf)).toEqual(['CANCELLED: may have taken effect']);
  });

  test('A17: one that has ended, or never was, stays as it is', async () => {
    const { process, session, world } = await running();
    await process.settle(600_000);
    process.deliver('CANCEL', 'c1', { tag: 't1' });
    process.deliver('CANCEL', 'c2', { tag: 'nobody' });
    process.deliver('CANCEL', 'c3', {});
    await process.settle();
    expect(session.of('t1').map(contentOf)).toEqual([expect.stringContaining('out of sleep 600')]);
    expect(['c1', 'c2', 'c3'].flatMap((tag) => session.of(tag).map(({ type }) => type))).toEqual([
      'NO_CONTENT',
      'NO_CONTENT',
      'ERROR',
    ]);
    expect(world.disk.dump()).toContain('t1 RUN_REMOTE_SCRIPT acked 1 done');
  });
});
