import { describe, expect, test } from 'vitest';
import { CallMeter } from '../../../src/adapters/metrics/call-meter.js';
import { MeteredLog } from '../../../src/adapters/metrics/metered-log.js';
import { MeteredStore } from '../../../src/adapters/metrics/metered-store.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { logKey } from '../../../src/domain/log/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

const options = { signal: new AbortController().signal };
const gone = new AgentError('store.unavailable', { problem: 'no leader' });

function setUp() {
  const clock = new FakeClock();
  const meter = new CallMeter(['get', 'commit'], clock);
  const take = async (ms: number, error?: unknown, signal = options.signal) => {
    const call = meter.measure('get', { signal }, async () => {
      await clock.sleep(ms, options);
      if (error !== undefined) throw error;
      return 'value';
    });
    const settled = call.catch((reason: unknown) => reason);
    await clock.advance(ms);
    return settled;
  };
  return { clock, meter, take };
}

describe('calls of a store', () => {
  test('are counted by what came of them, with their time; what comes of them is what comes', async () => {
    const { meter, take } = setUp();
    expect(await take(4)).toBe('value');
    const refused = new AgentError('store.too_large', { problem: 'too large' });
    expect(await take(2_000, refused)).toBe(refused);
    expect(await take(9_000, gone)).toBe(gone);
    const left = new AbortController();
    left.abort();
    expect(await take(60_000, gone, left.signal)).toBe(gone);
    const [get, commit] = meter.figures().operations;
    expect(get?.results).toEqual({ answered: 1, refused: 1, failed: 1, abandoned: 1 });
    expect(commit?.results).toEqual({ answered: 0, refused: 0, failed: 0, abandoned: 0 });
    // Up to 5 ms, 2.5 s, and more than 5 s.
    expect(get?.latency.counts).toEqual([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
    expect(get?.latency.sum).toBeCloseTo(11.004);
    expect(get?.latency.counts).toHaveLength((get?.latency.bounds.length ?? 0) + 1);
  });

  test('while they fail that is told, from the beginning of the first that did to the next answer', async () => {
    const { clock, meter, take } = setUp();
    expect(meter.figures()).toMatchObject({ failingSince: undefined, failingMs: 0, answeredInMs: undefined });
    const since = clock.now();
    await take(5_000, gone);
    expect(meter.figures()).toMatchObject({ failingSince: since, failingMs: 5_000, answeredInMs: undefined });
    await clock.advance(7_000);
    await take(5_000, gone);
    expect(meter.figures()).toMatchObject({ failingSince: since, failingMs: 17_000 });
    await take(3);
    expect(meter.figures()).toMatchObject({ failingSince: undefined, failingMs: 17_003, answeredInMs: 3 });
    await clock.advance(60_000);
    await take(1_000, new Error('any'));
    expect(meter.figures()).toMatchObject({ failingMs: 18_003 });
  });

  test('an answer to what was asked before says nothing of now', async () => {
    const { clock, meter } = setUp();
    const slow = meter.measure('get', options, () => clock.sleep(1_000, options));
    await clock.advance(500);
    await expect(meter.measure('commit', options, () => Promise.reject(gone))).rejects.toBe(gone);
    await clock.advance(500);
    await slow;
    expect(meter.figures().failingSince).toBe(clock.now() - 500);
  });
});

test('a metered store is the store, and counts', async () => {
  const fake = Object.assign(new FakeControlStore(), { open: async () => {}, close: async () => {}, problems: () => [] });
  const store = new MeteredStore(fake, new FakeClock());
  await store.open(options);
  expect(await store.commit([], [{ key: 'a/b', value: 'v' }], options)).toBe(1n);
  expect(await store.commit([{ key: 'a/b', version: 0n }], [], options)).toBeUndefined();
  expect(await store.get('a/b', options)).toMatchObject({ value: 'v' });
  expect(await store.list('a/', options)).toHaveLength(1);
  fake.failNext();
  await expect(store.get('a/b', options)).rejects.toMatchObject({ code: 'store.unavailable' });
  const stop = new AbortController();
  for await (const changes of store.watch('a/', { signal: stop.signal })) {
    expect(changes).toMatchObject([{ key: 'a/b', value: 'v' }]);
    stop.abort();
  }
  const counts = store.figures().operations.map(({ operation, results }) => [operation, results.answered, results.failed]);
  expect(counts).toEqual([
    ['get', 1, 1],
    ['list', 1, 0],
    ['commit', 2, 0],
  ]);
  expect(store.problems()).toEqual([]);
  await store.close();
});

test('a metered log is the log, and counts', async () => {
  const log = new MeteredLog(new FakeOrderedLog(), new FakeClock());
  await log.open(options);
  const begin = await log.head(options);
  const change = { key: logKey('service/default/a'), value: 'v' };
  expect(await log.propose({ changes: [change], preconditions: [] }, options)).toMatchObject({ outcome: 'committed' });
  expect((await log.snapshot('', options)).items).toHaveLength(1);
  const head = await log.head(options);
  expect(await log.newest(options)).toEqual(head);
  const stop = new AbortController();
  for await (const frame of log.watch(begin, { signal: stop.signal })) {
    expect(frame.kind).toBe('entry');
    stop.abort();
  }
  expect(log.figures().operations.map(({ operation, results }) => `${operation} ${results.answered}`)).toEqual([
    ...['propose 1', 'snapshot 1', 'head 2', 'newest 1'],
  ]);
  expect(log.problems()).toEqual([]);
  await log.close();
});
