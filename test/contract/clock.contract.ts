import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/ports/clock.js';

export interface ClockUnderTest {
  readonly clock: Clock;
  /** Lets that much time pass on it. */
  pass(ms: number): Promise<void>;
}

const options = { signal: new AbortController().signal };

/** Every Clock must pass. Times are tiny, as some clocks are real; only lower bounds are asserted. */
export function clockContract(name: string, make: () => ClockUnderTest): void {
  describe(`Clock: ${name}`, () => {
    test('both clocks go on', async () => {
      const { clock, pass } = make();
      const [wall, monotonic] = [clock.now(), clock.monotonic()];
      await pass(20);
      expect(clock.monotonic() - monotonic).toBeGreaterThanOrEqual(19);
      expect(clock.now() - wall).toBeGreaterThanOrEqual(18);
    });

    test('a sleep ends when its time has passed, not before', async () => {
      const { clock, pass } = make();
      const start = clock.monotonic();
      let woken: number | undefined;
      const sleep = clock.sleep(20, options).then(() => {
        woken = clock.monotonic();
      });
      await pass(5);
      expect(woken).toBeUndefined();
      await pass(30);
      await sleep;
      expect((woken ?? 0) - start).toBeGreaterThanOrEqual(19);
    });

    test('no time is over in the next turn', async () => {
      const { clock, pass } = make();
      const sleep = clock.sleep(0, options);
      await pass(5);
      await sleep;
    });

    test('sleepers wake in the order of their times', async () => {
      const { clock, pass } = make();
      const woken: number[] = [];
      const sleeps = [30, 10, 20].map((ms) => clock.sleep(ms, options).then(() => woken.push(ms)));
      await pass(40);
      await Promise.all(sleeps);
      expect(woken).toEqual([10, 20, 30]);
    });

    test('abort rejects at once with its reason, before and while it sleeps', async () => {
      const { clock } = make();
      const reason = new Error('enough');
      await expect(clock.sleep(60_000, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const abort = new AbortController();
      const sleeping = clock.sleep(60_000, { signal: abort.signal });
      abort.abort(reason);
      await expect(sleeping).rejects.toBe(reason);
    });

    test('an abort after the end means nothing', async () => {
      const { clock, pass } = make();
      const abort = new AbortController();
      const sleep = clock.sleep(1, { signal: abort.signal });
      await pass(5);
      await sleep;
      abort.abort(new Error('late'));
    });
  });
}
