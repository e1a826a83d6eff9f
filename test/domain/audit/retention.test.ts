import { describe, expect, test } from 'vitest';
import { AUDIT_LIMITS, type ClosedFile, planPruning, rotates } from '../../../src/domain/audit/retention.js';

const DAY = 24 * 60 * 60 * 1000;
const NOW = 1000 * DAY;

const closed = (last: number, ageDays: number): ClosedFile => ({
  name: `audit-${last}.log`,
  end: { sequence: BigInt(last), digest: `d${last}`, time: NOW - ageDays * DAY },
});
const unreadable = (last: number): ClosedFile => ({ name: `audit-${last}.log`, end: undefined });
const fresh = (count: number) => Array.from({ length: count }, (_, i) => closed(i + 1, 1));
const pruning = (...lasts: readonly number[]) => ({
  files: lasts.map((last) => `audit-${last}.log`),
  to: { sequence: BigInt(lasts.at(-1) ?? 0), digest: `d${lasts.at(-1)}` },
});

describe('H3: retention', () => {
  test.each<[string, readonly ClosedFile[], ReturnType<typeof planPruning>]>([
    ['nothing', [], undefined],
    ['20 files with the one that is written to', fresh(19), undefined],
    ['21 files', fresh(20), pruning(1)],
    ['25 files', fresh(24), pruning(1, 2, 3, 4, 5)],
    ['a year to the day', [closed(1, 365)], undefined],
    ['more than a year', [closed(1, 366), closed(2, 365.5), closed(3, 364)], pruning(1, 2)],
    ['an old one behind a newer one (the clock was set back) stays with it', [closed(1, 10), closed(2, 400)], undefined],
    ['what cannot be read stays, and what follows it', [closed(1, 400), unreadable(2), closed(3, 400)], pruning(1)],
    ['only what cannot be read', Array.from({ length: 30 }, (_, i) => unreadable(i + 1)), undefined],
  ])('%s', (_, files, plan) => {
    expect(planPruning(files, NOW, AUDIT_LIMITS)).toEqual(plan);
  });

  test('while the time is not known for sure, nothing is old, but too many are too many', () => {
    expect(planPruning([closed(1, 400)], undefined, AUDIT_LIMITS)).toBeUndefined();
    expect(planPruning(fresh(20), undefined, AUDIT_LIMITS)).toEqual(pruning(1));
  });

  test('law: what is left needs no pruning', () => {
    for (const count of [19, 20, 21, 60]) {
      const files = fresh(count);
      const gone = planPruning(files, NOW, AUDIT_LIMITS)?.files.length ?? 0;
      expect(planPruning(files.slice(gone), NOW, AUDIT_LIMITS)).toBeUndefined();
    }
  });
});

test('H3: rotation at 64 MiB', () => {
  const full = 64 * 1024 * 1024;
  expect([0, 1, full - 1, full, full + 1].map((size) => rotates(size, AUDIT_LIMITS))).toEqual([false, false, false, true, true]);
});
