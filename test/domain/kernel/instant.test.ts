import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatInstant, roughly } from '../../../src/domain/kernel/instant.js';

describe('formatInstant', () => {
  test.each([
    [0, '1970-01-01T00:00:00Z'],
    [Date.UTC(2024, 1, 29, 23, 59, 59), '2024-02-29T23:59:59Z'],
    [Date.UTC(2000, 1, 29), '2000-02-29T00:00:00Z'],
    [Date.UTC(2100, 2, 1), '2100-03-01T00:00:00Z'],
    [-1, '1969-12-31T23:59:59Z'],
  ])('%d is %s', (ms, text) => {
    expect(formatInstant(ms)).toBe(text);
  });

  test('agrees with the calendar of the machine', () => {
    // Years 1 to 9999: what has four digits.
    const instants = fc.integer({ min: Date.UTC(1901), max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(instants, (ms) => {
        expect(formatInstant(ms)).toBe(`${new Date(ms).toISOString().slice(0, 19)}Z`);
      }),
    );
  });
});

describe('roughly', () => {
  test.each([
    [0, '0 s'],
    [59_999, '59 s'],
    [119_000, '119 s'],
    [120_000, '2 min'],
    [2 * 3_600_000 + 59_000, '2 h'],
    [-2 * 3_600_000, '2 h'],
    [47 * 3_600_000, '47 h'],
    [48 * 3_600_000, '2 days'],
  ])('%d ms is %s', (ms, text) => {
    expect(roughly(ms)).toBe(text);
  });
});
