import { describe, expect, onTestFinished, test } from 'vitest';
import { WatchedMap } from '../../../src/app/certificate/watched-map.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { options } from './rig.js';

function setUp(store = new FakeControlStore()) {
  const clock = new FakeClock();
  const logger = new FakeLogger();
  const changes: string[] = [];
  const map = new WatchedMap<number>({
    store,
    prefix: 'n/',
    decode: (_, text) => {
      if (!/^\d+$/.test(text)) throw new Error(`no number: ${text}`);
      return Number(text);
    },
    clock,
    logger,
    random: () => 0,
    changed: (key, value) => changes.push(`${key}=${value}`),
  });
  const stopper = new AbortController();
  const followed = map.follow(stopper.signal);
  onTestFinished(async () => {
    stopper.abort();
    await followed;
  });
  const put = (key: string, value: string | null) => store.commit([], [{ key, value }], options);
  return { store, clock, logger, changes, map, put, stopper, followed };
}

describe('a watched map', () => {
  test('knows what was there, and what comes', async () => {
    const store = new FakeControlStore();
    await store.commit([], [{ key: 'n/a', value: '1' }], options);
    const { changes, clock, map, put } = setUp(store);
    expect(map.isLoaded).toBe(false);
    await map.loaded();
    expect([map.isLoaded, map.get('n/a'), map.size]).toEqual([true, 1, 1]);
    await put('n/b', '2');
    await put('n/a', '3');
    await put('n/b', null);
    await put('other', '9');
    await clock.advance(0);
    expect([map.get('n/a'), map.get('n/b'), map.size, ...map.values()]).toEqual([3, undefined, 1, 3]);
    expect(changes).toEqual(['n/a=1', 'n/b=2', 'n/a=3', 'n/b=undefined']);
  });

  test('that is empty is known as well', async () => {
    const { map } = setUp();
    await map.loaded();
    expect(map.size).toBe(0);
  });

  test('stands while the store is away, and is made right in one step when it is back', async () => {
    const { changes, clock, logger, map, put, store } = setUp();
    await put('n/a', '1');
    await put('n/b', '2');
    await clock.advance(0);
    store.setUnavailable(true);
    await clock.advance(60_000);
    expect([map.get('n/a'), map.get('n/b')]).toEqual([1, 2]);
    store.setUnavailable(false);
    await put('n/a', null);
    await put('n/b', '3');
    await put('n/c', '4');
    changes.length = 0;
    // The longest pause, when chance makes the least of it.
    await clock.advance(2_500);
    expect([map.get('n/a'), map.get('n/b'), map.get('n/c')]).toEqual([undefined, 3, 4]);
    expect(changes).toEqual(['n/a=undefined', 'n/b=3', 'n/c=4']);
    expect(logger.dump('info')).toBe(
      'warn n/: the store cannot be watched; what was known of it stands\ninfo n/: the store is watched again',
    );
  });

  test('what did not change is not told again', async () => {
    const { changes, clock, put, store } = setUp();
    await put('n/a', '1');
    await clock.advance(0);
    changes.length = 0;
    store.setUnavailable(true);
    store.setUnavailable(false);
    await clock.advance(10_000);
    expect(changes).toEqual([]);
  });

  test('a value that cannot be read is passed over, and the others are known', async () => {
    const { clock, logger, map, put } = setUp();
    await put('n/a', '1');
    await put('n/a', 'x');
    await put('n/b', '2');
    await clock.advance(0);
    expect([map.get('n/a'), map.get('n/b')]).toEqual([undefined, 2]);
    expect(logger.dump('error')).toBe('error n/a: cannot be read and is passed over');
  });

  test('ends with its signal', async () => {
    const { clock, followed, map, put, stopper } = setUp();
    await map.loaded();
    stopper.abort();
    await followed;
    await put('n/a', '1');
    await clock.advance(10_000);
    expect(map.size).toBe(0);
  });
});
