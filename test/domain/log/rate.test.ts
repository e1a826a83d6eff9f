import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PROPOSALS_PER_SECOND, Rate } from '../../../src/domain/log/rate.js';

test('E17: twenty at once, then one each 50 ms', () => {
  const rate = new Rate(PROPOSALS_PER_SECOND, 0);
  const taken = (now: number, tries: number) => Array.from({ length: tries }, () => rate.take(now)).filter(Boolean).length;
  expect([taken(0, 30), taken(49, 1), taken(50, 2), taken(1_050, 30)]).toEqual([20, 0, 1, 20]);
});

test('law: no second has more than twice the rate', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100), { maxLength: 200 }), (gaps) => {
      const rate = new Rate(PROPOSALS_PER_SECOND, 0);
      let now = 0;
      const taken: number[] = [];
      for (const gap of gaps) {
        now += gap;
        if (rate.take(now)) taken.push(now);
      }
      for (const at of taken) {
        expect(taken.filter((other) => other >= at && other < at + 1_000).length).toBeLessThanOrEqual(2 * PROPOSALS_PER_SECOND);
      }
    }),
  );
});
