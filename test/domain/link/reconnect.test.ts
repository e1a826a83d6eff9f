import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressOrder, type LostLink, planReconnect } from '../../../src/domain/link/reconnect.js';

const lost = (more: Partial<LostLink> = {}): LostLink => ({
  what: 'connection',
  upMs: 0,
  spreadMs: 0,
  retryMs: undefined,
  ...more,
});
const AT_MOST = 1 - Number.EPSILON;

describe('I3: how long to wait', () => {
  test.each([
    { name: 'the connection died, no hint', lost: lost(), failures: 0, most: 10_000 },
    { name: 'a hint below the least', lost: lost({ spreadMs: 500 }), failures: 0, most: 10_000 },
    { name: 'a hint of a large fleet', lost: lost({ spreadMs: 100_000 }), failures: 0, most: 100_000 },
    { name: 'only the stream ended', lost: lost({ what: 'stream', spreadMs: 100_000 }), failures: 0, most: 1_000 },
    { name: 'second', lost: lost({ spreadMs: 100_000 }), failures: 1, most: 1_000 },
    { name: 'third', lost: lost(), failures: 2, most: 2_000 },
    { name: 'fourth', lost: lost({ what: 'stream' }), failures: 3, most: 4_000 },
    { name: 'seventh', lost: lost(), failures: 6, most: 32_000 },
    { name: 'eighth', lost: lost(), failures: 7, most: 60_000 },
    { name: 'the thousandth', lost: lost(), failures: 999, most: 60_000 },
    { name: 'up for just under 2 min', lost: lost({ upMs: 119_999 }), failures: 7, most: 60_000 },
    { name: 'up for 2 min: anew', lost: lost({ upMs: 120_000, spreadMs: 20_000 }), failures: 7, most: 20_000 },
  ])('$name: uniform in [0, $most]', ({ lost: what, failures, most }) => {
    expect(planReconnect(what, failures, 0).waitMs).toBe(0);
    expect(planReconnect(what, failures, 0.5).waitMs).toBe(most / 2);
    expect(planReconnect(what, failures, AT_MOST).waitMs).toBeCloseTo(most);
    expect(planReconnect(what, failures, 0).failures).toBe((what.upMs >= 120_000 ? 0 : failures) + 1);
  });

  test('a planned stop says when, and is no failure', () => {
    expect(planReconnect(lost({ what: 'stream', retryMs: 4_321 }), 2, 0.9)).toEqual({ waitMs: 4_321, failures: 2 });
    expect(planReconnect(lost({ what: 'stream', retryMs: 0, upMs: 1e9 }), 2, 0.9)).toEqual({ waitMs: 0, failures: 0 });
  });

  test('B4: a duplicate waits 5 min', () => {
    expect(planReconnect(lost({ what: 'duplicate' }), 1, 0)).toEqual({ waitMs: 300_000, failures: 1 });
  });
});

describe('which address comes next', () => {
  test.each([
    { name: 'a new process, low', last: undefined, random: 0, order: [0, 1, 2] },
    { name: 'a new process, high', last: undefined, random: 0.99, order: [2, 0, 1] },
    { name: 'only the stream ended', last: { index: 1, what: 'stream' }, random: 0.99, order: [1, 2, 0] },
    { name: 'the connection died', last: { index: 1, what: 'connection' }, random: 0, order: [2, 0, 1] },
  ] as const)('$name', ({ last, random, order }) => expect(addressOrder(3, last, random)).toEqual(order));

  test('law: each once', () => {
    const last = fc.option(fc.record({ index: fc.nat(9), what: fc.constantFrom('stream' as const, 'connection' as const) }), {
      nil: undefined,
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 }),
        last,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (count, before, random) => {
          const order = addressOrder(
            count,
            before === undefined ? undefined : { ...before, index: before.index % count },
            random,
          );
          expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => index));
        },
      ),
    );
  });
});
