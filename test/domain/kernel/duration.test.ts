import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { durationMs, formatDuration } from '../../../src/domain/kernel/duration.js';

describe('durationMs', () => {
  test.each<[string, number | undefined]>([
    ['0s', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['576h', 2_073_600_000],
    ['577h', undefined],
    ['99999999999ms', undefined],
    ['', undefined],
    ['30', undefined],
    ['s', undefined],
    ['30 s', undefined],
    [' 30s', undefined],
    ['30s\n', undefined],
    ['030s', undefined],
    ['-1s', undefined],
    ['1.5s', undefined],
    ['1e3ms', undefined],
    ['1m30s', undefined],
    ['1d', undefined],
    ['30S', undefined],
    ['٣s', undefined],
  ])('%j is %s', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });

  test('law: what is formatted is read back', () => {
    const read = (ms: number) => {
      expect(durationMs(formatDuration(ms))).toBe(ms);
    };
    fc.assert(fc.property(fc.nat(2_073_600_000), read));
    fc.assert(fc.property(fc.nat(576), (hours) => read(hours * 3_600_000)));
  });
});
