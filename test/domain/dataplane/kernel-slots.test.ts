import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Deal, dealByRendezvous, dealByWeight, FIXED_MODULUS, moduli } from '../../../src/domain/dataplane/kernel-slots.js';
import type { L4Endpoint } from '../../../src/domain/dataplane/model.js';
import { kernelEndpoint } from '../../support/kernel-listeners.js';

const weighted = (...weights: readonly number[]) =>
  weights.map((weight, index) => kernelEndpoint(`10.0.${Math.floor(index / 200)}.${index % 200}`, weight));

function countOf({ slots }: Deal, each: L4Endpoint | undefined): number {
  return slots.filter((slot) => slot === each).length;
}

describe('random', () => {
  test.each<[readonly number[], number]>([
    [[1], 1],
    [[1, 1, 1], 3],
    [[1, 1, 1, 1, 1], 5],
    [Array(7).fill(1), 7],
    [[1, 3], 4],
    [[3, 5, 7], 15],
    [[50, 100], 3],
    [[100, 100, 100], 3],
    [[63, 1], 64],
  ])('weights %j are dealt exactly, in %i slots', (weights, modulus) => {
    const endpoints = weighted(...weights);
    const deal = dealByWeight(endpoints);
    expect(deal.slots.length).toBe(modulus);
    expect(deal.error).toBe(0);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    for (const each of endpoints) expect(countOf(deal, each) / modulus).toBeCloseTo(each.weight / sum, 10);
  });

  test.each<[readonly number[], number]>([
    [[1, 99], 512],
    [[99, 100], 128],
  ])('weights %j: the smallest modulus within 3 %%, %i', (weights, modulus) => {
    const deal = dealByWeight(weighted(...weights));
    expect(deal.slots.length).toBe(modulus);
    expect(deal.error).toBeLessThanOrEqual(0.03);
  });

  test('where no modulus comes as near, the largest, and it says how far the worst share is off', () => {
    const deal = dealByWeight(weighted(...Array.from({ length: 100 }, (_, index) => index + 1)));
    expect(deal.slots.length).toBe(2_048);
    expect(deal.error).toBeGreaterThan(0.03);
    // Of 0.4 slots the least one has a whole one.
    expect(deal.error).toBeCloseTo(5_050 / 2_048 - 1, 6);
    expect(new Set(deal.slots).size).toBe(100);
  });

  test('whatever the weights: as many slots as a modulus, and the error is that of the shares', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 40 }), (weights) => {
        const endpoints = weighted(...weights);
        const deal = dealByWeight(endpoints);
        expect(moduli).toContain(deal.slots.length);
        const sum = weights.reduce((total, weight) => total + weight, 0);
        const worst = Math.max(
          ...endpoints.map((each) => Math.abs(countOf(deal, each) / deal.slots.length / (each.weight / sum) - 1)),
        );
        expect(deal.error).toBeCloseTo(worst, 9);
      }),
      { numRuns: 200 },
    );
  });
});

test('slots that clients keep: when an endpoint goes, its own move and no others', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 2, maxLength: 12 }), fc.nat(), (weights, which) => {
      const endpoints = weighted(...weights);
      const gone = endpoints[which % endpoints.length];
      const before = dealByRendezvous(endpoints);
      const after = dealByRendezvous(endpoints.filter((each) => each !== gone));
      expect(before.slots.length).toBe(FIXED_MODULUS);
      for (const [slot, owner] of before.slots.entries()) {
        if (owner !== gone) expect(after.slots[slot]).toBe(owner);
        else expect(after.slots[slot]).not.toBe(gone);
      }
    }),
    { numRuns: 50 },
  );
});

test('shares of slots that clients keep follow the weights', () => {
  const deal = dealByRendezvous(weighted(1, 3));
  expect(
    countOf(
      deal,
      deal.slots.find(({ weight }) => weight === 3),
    ) / FIXED_MODULUS,
  ).toBeCloseTo(0.75, 1);
});
