import { describe, expect, test } from 'vitest';
import { FLUSH_MS } from '../../../src/app/link/presence-board.js';
import { ServerClocks } from '../../../src/app/link/server-clocks.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';
import { fleetRig } from '../../support/fleet-rig.js';

describe('E19: what the clocks of other servers say', () => {
  test('the newest of those that live goes on by itself; the dead and those of this machine do not count', async () => {
    const clock = new FakeClock(1_000);
    const clocks = new ServerClocks(clock, 'me-');
    expect(clocks.newest()).toBeUndefined();
    clocks.heard('me-0badcafe', 9_000_000);
    expect(clocks.newest()).toBeUndefined();
    clocks.heard('a-1', 500);
    await clock.advance(5_000);
    clocks.heard('b-1', 100);
    expect(clocks.newest()).toBe(5_500);
    await clock.advance(10_001);
    expect(clocks.newest()).toBe(10_101);
    await clock.advance(5_000);
    expect(clocks.newest()).toBeUndefined();
  });

  test('is what they write into the store, and not what this server wrote', async () => {
    const store = new FakeControlStore();
    const [slow, fast] = [new FakeClock(10_000), new FakeClock(7_210_000)];
    const one = await fleetRig({ server: 's1', store, clock: slow });
    const other = await fleetRig({ server: 's2', store, clock: fast });
    await slow.advance(FLUSH_MS);
    await fast.advance(FLUSH_MS);
    await slow.advance(0);
    expect(one.clocks.newest()).toBe(fast.now());
    // Written before the other one's clock went on by as much.
    expect(other.clocks.newest()).toBe(slow.now() + FLUSH_MS);
  });
});
