import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clockProblem, judgeTime, type TimeJudgement } from '../../../src/domain/log/time.js';

const HOUR = 3_600_000;
const head = 100 * HOUR;
const right: TimeJudgement = { verdict: 'right' };

describe('E19: judgeTime', () => {
  test.each<{ name: string; now: number; others: number | undefined; judgement: TimeJudgement }>([
    { name: 'with the head', now: head, others: head, judgement: right },
    { name: '5 s behind', now: head - 5_000, others: head, judgement: right },
    { name: 'more than 5 s behind', now: head - 5_001, others: head, judgement: { verdict: 'behind', byMs: 5_001 } },
    { name: 'behind, and alone', now: head - HOUR, others: undefined, judgement: { verdict: 'behind', byMs: HOUR } },
    { name: '60 s ahead of both', now: head + 60_000, others: head, judgement: right },
    { name: 'more than 60 s ahead of both', now: head + 60_001, others: head, judgement: { verdict: 'ahead', byMs: 60_001 } },
    { name: 'ahead of the head, which is old', now: head + 2 * HOUR, others: head + 2 * HOUR - 4_000, judgement: right },
    { name: 'ahead of a server that is slow, but not of the head', now: head, others: head - HOUR, judgement: right },
    {
      name: 'ahead of others that are ahead of an old head',
      now: head + 4 * HOUR,
      others: head + 2 * HOUR,
      judgement: { verdict: 'ahead', byMs: 2 * HOUR },
    },
    { name: 'ahead of the head, and alone: its clock is the clock', now: head + 2 * HOUR, others: undefined, judgement: right },
  ])('$name', ({ now, others, judgement }) => expect(judgeTime({ now, others }, head)).toEqual(judgement));

  test.each([
    { name: 'the first entry of a server that is alone', others: undefined, judgement: right },
    { name: 'the first entry, and another server says the same', others: head - 3_000, judgement: right },
    { name: 'the first entry, by a clock that is fast', others: head - HOUR, judgement: { verdict: 'ahead', byMs: HOUR } },
  ])('an empty log: $name', ({ others, judgement }) => expect(judgeTime({ now: head, others }, 0)).toEqual(judgement));

  test('law: two that hear each other never move the log by more than 60 s beyond the faster of what was there', () => {
    const clocks = fc.integer({ min: 0, max: 10 * HOUR });
    fc.assert(
      fc.property(clocks, clocks, clocks, (now, others, last) => {
        const { verdict } = judgeTime({ now, others }, last);
        const time = verdict === 'ahead' ? last : Math.max(now, last);
        expect(time).toBeLessThanOrEqual(Math.max(last, others) + 60_000);
      }),
    );
  });
});

test('what is wrong is said in seconds', () => {
  expect(clockProblem({ verdict: 'right' })).toBeUndefined();
  expect(clockProblem({ verdict: 'ahead', byMs: 7_200_400 })).toMatch(/ is 7200 s ahead of the log .* refused$/);
  expect(clockProblem({ verdict: 'behind', byMs: 7_200_400 })).toMatch(/ is 7200 s behind the log: .* newest entry$/);
});
