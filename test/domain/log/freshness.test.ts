import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  afterLoss,
  afterSign,
  afterTime,
  type Freshness,
  freshnessAtStart,
  type Sign,
  STALE_AFTER_MS,
} from '../../../src/domain/log/freshness.js';

const bookmark: Sign = { bookmark: true, ageMs: 0, reachedHead: true };
const entry: Sign = { ...bookmark, bookmark: false };
const stale: Freshness = { fresh: false, confirmedAt: undefined, bookmarks: 0 };

describe('J3: at the start the age is the wall clock less the stored time', () => {
  const now = { wall: 1_000_000, boot: 500_000 };
  test.each<[string, number | undefined, Freshness]>([
    ['nothing stored', undefined, stale],
    ['unreadable', Number.NaN, stale],
    ['in the future', 1_000_001, stale],
    ['just now', 1_000_000, { fresh: true, confirmedAt: 500_000, bookmarks: 0 }],
    ['at the limit', 970_000, { fresh: true, confirmedAt: 470_000, bookmarks: 0 }],
    ['beyond it', 969_999, { fresh: false, confirmedAt: 469_999, bookmarks: 0 }],
    ['never confirmed', 0, stale],
  ])('%s', (_, storedAt, expected) => {
    expect(freshnessAtStart(storedAt, now, STALE_AFTER_MS)).toEqual(expected);
  });
});

type Step = readonly [seconds: number, what: Sign | 'look' | 'loss'];

/** Whether it is fresh after each step. */
function walk(start: Freshness, steps: readonly Step[]): string {
  let state = start;
  return steps
    .map(([seconds, what]) => {
      const boot = seconds * 1_000;
      if (what === 'loss') state = afterLoss(state);
      else if (what === 'look') state = afterTime(state, boot, STALE_AFTER_MS);
      else state = afterSign(state, what, boot, STALE_AFTER_MS);
      return state.fresh ? 'fresh' : 'stale';
    })
    .join(' ');
}

const fresh: Freshness = { fresh: true, confirmedAt: 0, bookmarks: 0 };

describe('J2, J3: what makes a view fresh and stale', () => {
  test.each<{ name: string; start: Freshness; steps: readonly Step[]; expected: string }>([
    {
      name: 'two bookmarks, not one',
      start: stale,
      steps: [
        [1, bookmark],
        [6, bookmark],
      ],
      expected: 'stale fresh',
    },
    {
      name: 'entries are no bookmarks',
      start: stale,
      steps: [
        [1, entry],
        [2, entry],
        [3, bookmark],
        [4, entry],
        [8, bookmark],
      ],
      expected: 'stale stale stale stale fresh',
    },
    {
      name: 'idle with bookmarks it stays fresh',
      start: fresh,
      steps: [
        [5, bookmark],
        [10, bookmark],
        [39, 'look'],
        [40, 'look'],
      ],
      expected: 'fresh fresh fresh fresh',
    },
    {
      name: 'stale after 30 s without a sign, not at 30',
      start: fresh,
      steps: [
        [30, 'look'],
        [30.001, 'look'],
      ],
      expected: 'fresh stale',
    },
    {
      name: 'entries keep it fresh as well',
      start: fresh,
      steps: [
        [20, entry],
        [50, 'look'],
        [50.1, 'look'],
      ],
      expected: 'fresh fresh stale',
    },
    {
      name: 'a short loss changes nothing',
      start: fresh,
      steps: [
        [5, 'loss'],
        [29, 'look'],
        [29.5, entry],
        [40, 'look'],
      ],
      expected: 'fresh fresh fresh fresh',
    },
    {
      name: 'a server without quorum is not current',
      start: fresh,
      steps: [
        [5, { ...bookmark, ageMs: 30_000 }],
        [6, { ...bookmark, ageMs: 30_001 }],
      ],
      expected: 'fresh stale',
    },
    {
      name: 'nor does it make a view fresh',
      start: stale,
      steps: [
        [1, { ...bookmark, ageMs: 40_000 }],
        [6, { ...bookmark, ageMs: 40_000 }],
        [9, bookmark],
      ],
      expected: 'stale stale stale',
    },
    {
      name: 'one that is replaying confirms nothing',
      start: fresh,
      steps: [
        [20, { ...entry, reachedHead: false }],
        [31, { ...bookmark, reachedHead: false }],
      ],
      expected: 'fresh stale',
    },
    {
      name: 'a loss between two bookmarks',
      start: stale,
      steps: [
        [1, bookmark],
        [2, 'loss'],
        [3, bookmark],
        [8, bookmark],
      ],
      expected: 'stale stale stale fresh',
    },
    {
      name: 'two bookmarks that are too far apart',
      start: stale,
      steps: [
        [1, bookmark],
        [32, bookmark],
        [37, bookmark],
      ],
      expected: 'stale stale fresh',
    },
    {
      name: 'stale again it needs two again',
      start: fresh,
      steps: [
        [31, 'look'],
        [32, bookmark],
        [37, bookmark],
      ],
      expected: 'stale stale fresh',
    },
    {
      name: 'the sign itself comes too late',
      start: fresh,
      steps: [
        [31, bookmark],
        [36, bookmark],
      ],
      expected: 'stale fresh',
    },
  ])('$name', ({ start, steps, expected }) => {
    expect(walk(start, steps)).toBe(expected);
  });

  test('law: a view is never fresh when nothing has confirmed it for longer than the limit', () => {
    const sign = fc.record({ bookmark: fc.boolean(), ageMs: fc.nat(60_000), reachedHead: fc.boolean() });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(20_000), fc.option(sign))), (steps) => {
        let [state, boot, confirmed] = [stale, 0, Number.NEGATIVE_INFINITY];
        for (const [ms, each] of steps) {
          boot += ms;
          state = each === null ? afterTime(state, boot, STALE_AFTER_MS) : afterSign(state, each, boot, STALE_AFTER_MS);
          if (each?.reachedHead === true && each.ageMs <= STALE_AFTER_MS) confirmed = boot;
          if (state.fresh) expect(boot - confirmed).toBeLessThanOrEqual(STALE_AFTER_MS);
        }
      }),
    );
  });
});
