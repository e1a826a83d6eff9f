import { describe, expect, test } from 'vitest';
import { ReconcileLoop, type ReconcileLoopConfig } from '../../../src/app/agent/reconcile-loop.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';

function setUp(config: Partial<ReconcileLoopConfig> = {}) {
  const clock = new FakeClock(1_000_000);
  const logger = new FakeLogger();
  /** When each run began, from the start on. */
  const runs: number[] = [];
  const state: { failure: Error | undefined; hold: Promise<void> | undefined } = { failure: undefined, hold: undefined };
  const loop = new ReconcileLoop({
    name: 'rules',
    clock,
    logger,
    random: () => 0,
    leastGapMs: 100,
    greatestGapMs: 10_000,
    run: async () => {
      runs.push(clock.monotonic());
      await state.hold;
      if (state.failure !== undefined) throw state.failure;
    },
    ...config,
  });
  return { clock, logger, loop, runs, state };
}

describe('when it runs', () => {
  test('at once, then after the greatest gap', async () => {
    const { clock, loop, runs } = setUp();
    loop.start();
    await clock.advance(25_000);
    expect(runs).toEqual([0, 10_000, 20_000]);
    await loop.stop();
  });

  test('at once when it is marked after the least gap', async () => {
    const { clock, loop, runs } = setUp();
    loop.start();
    await clock.advance(500);
    loop.markDirty();
    await clock.advance(0);
    expect(runs).toEqual([0, 500]);
    await clock.advance(10_000);
    expect(runs).toEqual([0, 500, 10_500]);
    await loop.stop();
  });

  test('after the least gap when it is marked before, once for many marks', async () => {
    const { clock, loop, runs } = setUp();
    loop.start();
    await clock.advance(50);
    for (let mark = 0; mark < 100; mark++) loop.markDirty();
    await clock.advance(49);
    expect(runs).toEqual([0]);
    await clock.advance(1_000);
    expect(runs).toEqual([0, 100]);
    await loop.stop();
  });

  test('one run at a time, and once more for marks during a run', async () => {
    const { clock, loop, runs, state } = setUp();
    const hold = Promise.withResolvers<void>();
    state.hold = hold.promise;
    loop.start();
    await clock.advance(5_000);
    loop.markDirty();
    loop.markDirty();
    await clock.advance(5_000);
    expect(runs).toEqual([0]);
    expect(loop.status()).toMatchObject({ running: true, dirty: true });
    hold.resolve();
    await clock.advance(1_000);
    expect(runs).toEqual([0, 10_100]);
    await loop.stop();
  });

  test('a mark before the start is part of the first run', async () => {
    const { clock, loop, runs } = setUp();
    loop.markDirty();
    loop.start();
    await clock.advance(1_000);
    expect(runs).toEqual([0]);
    await loop.stop();
  });

  test('starting it twice is starting it once', async () => {
    const { clock, loop, runs } = setUp();
    loop.start();
    loop.start();
    await clock.advance(10_000);
    expect(runs).toEqual([0, 10_000]);
    await loop.stop();
  });
});

describe('when it fails', () => {
  test.each<{ name: string; random: () => number; runs: readonly number[] }>([
    { name: 'doubles its wait up to the greatest', random: () => 0, runs: [0, 500, 1_500, 3_500, 5_500, 7_500] },
    { name: 'adds chance to it', random: () => 0.5, runs: [0, 750, 2_250, 5_250, 8_250] },
  ])('$name', async ({ random, runs: expected }) => {
    const { clock, loop, runs, state } = setUp({ random, firstBackoffMs: 1_000, greatestBackoffMs: 4_000 });
    state.failure = new Error('no route');
    loop.start();
    await clock.advance(9_000);
    expect(runs).toEqual(expected);
    await loop.stop();
  });

  test('what it needed is back: the next run is at once, a mark alone waits', async () => {
    const { clock, loop, runs, state } = setUp({ leastGapMs: 0, firstBackoffMs: 4_000 });
    state.failure = new Error('no route');
    loop.start();
    await clock.advance(500);
    loop.markDirty();
    await clock.advance(500);
    expect(runs).toEqual([0]);
    state.failure = undefined;
    loop.retryNow();
    await clock.advance(0);
    expect([runs, loop.status().error]).toEqual([[0, 1_000], undefined]);
    loop.retryNow();
    await clock.advance(0);
    expect(runs).toEqual([0, 1_000, 1_000]);
    await loop.stop();
  });

  test('a mark does not shorten the wait', async () => {
    const { clock, loop, runs, state } = setUp({ firstBackoffMs: 2_000 });
    state.failure = new Error('no route');
    loop.start();
    await clock.advance(200);
    loop.markDirty();
    await clock.advance(799);
    expect(runs).toEqual([0]);
    await clock.advance(1);
    expect(runs).toEqual([0, 1_000]);
    await loop.stop();
  });

  test('its status tells the newest error and since when, until it works again', async () => {
    const { clock, logger, loop, state } = setUp({ firstBackoffMs: 2_000 });
    const error = new Error('no route');
    loop.start();
    await clock.advance(0);
    expect(loop.status()).toEqual({ running: false, dirty: false, lastSuccess: 1_000_000, error: undefined });
    state.failure = new Error('first');
    await clock.advance(10_000);
    state.failure = error;
    await clock.advance(1_000);
    expect(loop.status()).toEqual({
      running: false,
      dirty: false,
      lastSuccess: 1_000_000,
      error: { error, since: 1_010_000, failures: 2 },
    });
    state.failure = undefined;
    await clock.advance(2_000);
    expect(loop.status()).toEqual({ running: false, dirty: false, lastSuccess: 1_013_000, error: undefined });
    expect(logger.dump()).toBe(
      'warn rules: failed, will be tried again\nwarn rules: failed, will be tried again\ninfo rules: works again',
    );
    await loop.stop();
  });

  test('after a success the wait begins small again', async () => {
    const { clock, loop, runs, state } = setUp({ firstBackoffMs: 2_000 });
    state.failure = new Error('no route');
    loop.start();
    await clock.advance(1_000);
    state.failure = undefined;
    await clock.advance(2_000);
    state.failure = new Error('no route');
    loop.markDirty();
    await clock.advance(200);
    await clock.advance(1_000);
    expect(runs).toEqual([0, 1_000, 3_000, 3_100, 4_100]);
    await loop.stop();
  });

  test('a run that throws before its first await is a failure like any other', async () => {
    const { clock, loop } = setUp({
      run: () => {
        throw new Error('at once');
      },
    });
    loop.start();
    await clock.advance(0);
    expect(loop.status().error).toMatchObject({ error: { message: 'at once' } });
    await loop.stop();
  });
});

describe('stop', () => {
  test('ends every wait and may come before the start and twice', async () => {
    const { clock, loop, runs } = setUp();
    await loop.stop();
    loop.start();
    await clock.advance(50);
    await loop.stop();
    await loop.stop();
    loop.markDirty();
    await clock.advance(60_000);
    expect(runs).toEqual([0]);
  });

  test('tells the run under way, waits for it, and takes its rejection for no failure', async () => {
    const { clock, loop } = setUp({
      run: (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    loop.start();
    await clock.advance(50);
    await loop.stop();
    expect(loop.status()).toEqual({ running: false, dirty: false, lastSuccess: undefined, error: undefined });
  });

  test('a loop may be started again', async () => {
    const { clock, loop, runs } = setUp();
    loop.start();
    await clock.advance(50);
    await loop.stop();
    loop.start();
    await clock.advance(0);
    expect(runs).toEqual([0, 50]);
    await loop.stop();
  });

  test('the end of the signal that it was started with stops it', async () => {
    const { clock, loop, runs } = setUp();
    const controller = new AbortController();
    loop.start(controller.signal);
    await clock.advance(50);
    controller.abort();
    await clock.advance(60_000);
    expect(runs).toEqual([0]);
    await loop.settled();
  });
});

describe('settled', () => {
  const isSettled = async (loop: ReconcileLoop, clock: FakeClock) => {
    let settled = false;
    void loop.settled().then(() => {
      settled = true;
    });
    await clock.advance(0);
    return settled;
  };

  test('is true before the start, after a run, and after the stop', async () => {
    const { clock, loop } = setUp();
    expect(await isSettled(loop, clock)).toBe(true);
    loop.start();
    await loop.settled();
    loop.markDirty();
    await loop.stop();
    await loop.settled();
  });

  test('waits for the run that follows the last mark', async () => {
    const { clock, loop, runs, state } = setUp();
    const hold = Promise.withResolvers<void>();
    loop.start();
    await clock.advance(10);
    loop.markDirty();
    expect(await isSettled(loop, clock)).toBe(false);
    state.hold = hold.promise;
    await clock.advance(90);
    expect(runs).toEqual([0, 100]);
    expect(await isSettled(loop, clock)).toBe(false);
    hold.resolve();
    await clock.advance(0);
    expect(await isSettled(loop, clock)).toBe(true);
    await loop.stop();
  });

  test('is true after a failed run as well', async () => {
    const { clock, loop, state } = setUp();
    state.failure = new Error('no route');
    loop.start();
    await clock.advance(0);
    expect(await isSettled(loop, clock)).toBe(true);
    await loop.stop();
  });

  test('whoever waits is let go by the stop', async () => {
    const { clock, loop } = setUp();
    loop.start();
    await clock.advance(10);
    loop.markDirty();
    const settled = loop.settled();
    await loop.stop();
    await settled;
  });
});
