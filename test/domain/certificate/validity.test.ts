import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextRenewalAt, renewalTime, validityOf, withRenewal } from '../../../src/domain/certificate/validity.js';
import { DAY, HOUR, MINUTE, NOW } from './support.js';

describe('F2: lifetimes', () => {
  test.each([
    ['ownKey', 90],
    ['madeKey', 365],
    ['server', 90],
    ['admin', 365],
    ['root', 3_652],
  ] as const)('%s lives %d days, and is dated back by ten minutes', (lifetime, days) => {
    expect(validityOf(lifetime, NOW)).toEqual({ notBefore: NOW - 10 * MINUTE, notAfter: NOW + days * DAY });
  });
});

describe('F5: the time of renewal', () => {
  const lasting = (days: number) => ({ notBefore: NOW, notAfter: NOW + days * DAY });

  test.each([
    { name: 'a third of 90 days', days: 90, jitter: 0, left: 30 },
    { name: '30 days of a year', days: 365, jitter: 0, left: 30 },
    { name: 'a third of 30 days', days: 30, jitter: 0, left: 10 },
    { name: 'a tenth earlier', days: 90, jitter: 1, left: 33 },
    { name: 'a tenth later', days: 90, jitter: -1, left: 27 },
  ])('$name', ({ days, jitter, left }) => {
    const validity = lasting(days);
    expect(renewalTime(validity, jitter)).toBe(validity.notAfter - left * DAY);
  });

  test('always leaves something, and is never before the certificate is half through', () => {
    fc.assert(
      fc.property(fc.integer({ min: MINUTE, max: 4_000 * DAY }), fc.double({ min: -1, max: 1, noNaN: true }), (ms, jitter) => {
        const at = renewalTime({ notBefore: 0, notAfter: ms }, jitter);
        expect(at).toBeLessThan(ms);
        expect(at).toBeGreaterThan(ms / 2);
      }),
    );
  });
});

describe('F5: one a minute and ten a day', () => {
  test.each([
    { name: 'none yet', renewals: [], next: NOW },
    { name: 'one a moment ago', renewals: [NOW - 1_000], next: NOW + 59_000 },
    { name: 'one a minute ago', renewals: [NOW - MINUTE], next: NOW },
    { name: 'nine today', renewals: Array.from({ length: 9 }, (_, i) => NOW - (10 - i) * HOUR), next: NOW },
    { name: 'ten today', renewals: Array.from({ length: 10 }, (_, i) => NOW - (20 - i) * HOUR), next: NOW + 4 * HOUR },
    {
      name: 'ten, of which one was yesterday',
      renewals: [NOW - 25 * HOUR, ...Array.from({ length: 9 }, (_, i) => NOW - (20 - i) * HOUR)],
      next: NOW,
    },
    { name: 'ahead of a clock that was set back', renewals: [NOW + 5 * DAY], next: NOW },
  ])('$name', ({ renewals, next }) => {
    expect(nextRenewalAt(renewals, NOW)).toBe(next);
  });

  test('whoever asks each second for three days gets thirty', () => {
    let renewals: readonly number[] = [];
    let given = 0;
    for (let now = NOW; now < NOW + 3 * DAY; now += 1_000) {
      if (nextRenewalAt(renewals, now) > now) continue;
      renewals = withRenewal(renewals, now);
      given += 1;
    }
    expect(given).toBe(30);
    expect(renewals.length).toBe(10);
  });
});
