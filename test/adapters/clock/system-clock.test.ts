import { describe, expect, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';

describe('SystemClock', () => {
  test('sleeps as long as it is told, by the clock that never goes back', async () => {
    const clock = new SystemClock();
    const start = clock.monotonic();
    await clock.sleep(30, { signal: new AbortController().signal });
    expect(clock.monotonic() - start).toBeGreaterThanOrEqual(29);
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1_000);
  });

  test('abort rejects at once with its reason, before and while it sleeps, for longer than a timer takes as well', async () => {
    const clock = new SystemClock({ unref: true });
    const reason = new Error('enough');
    await expect(clock.sleep(60_000, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const abort = new AbortController();
    const sleeping = clock.sleep(2 ** 40, { signal: abort.signal });
    setTimeout(() => abort.abort(reason), 5);
    await expect(sleeping).rejects.toBe(reason);
  });
});
