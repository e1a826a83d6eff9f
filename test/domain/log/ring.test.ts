import { describe, expect, test } from 'vitest';
import { type Entry, revision, ZERO_DIGEST } from '../../../src/domain/log/model.js';
import { RevisionQueue } from '../../../src/domain/log/revision-queue.js';
import { EntryRing, type SizedEntry } from '../../../src/domain/log/ring.js';

function sized(number: number, size: number): SizedEntry {
  const entry: Entry = {
    version: 1,
    revision: revision(BigInt(number)),
    time: 0,
    previousDigest: ZERO_DIGEST,
    digest: ZERO_DIGEST,
    requestId: undefined,
    changes: [],
  };
  return { entry, size };
}

describe('the ring', () => {
  test.each<{ name: string; sizes: number[]; held: number[] }>([
    { name: 'holds what fits', sizes: [40, 40], held: [1, 2] },
    { name: 'lets the oldest go by size', sizes: [40, 40, 40], held: [2, 3] },
    { name: 'lets the oldest go by number', sizes: [1, 1, 1, 1, 1, 1], held: [3, 4, 5, 6] },
    { name: 'always holds the newest', sizes: [40, 500], held: [2] },
    { name: 'holds small ones again after a large one', sizes: [500, 10, 10], held: [2, 3] },
  ])('$name', ({ sizes, held }) => {
    const ring = new EntryRing(revision(1n), { size: 100, entries: 4 });
    for (const [i, size] of sizes.entries()) ring.push(sized(i + 1, size));
    const found = Array.from({ length: 10 }, (_, i) => i).filter((i) => ring.at(revision(BigInt(i))) !== undefined);
    expect(found).toEqual(held);
    expect(Number(ring.first)).toBe(held[0]);
  });

  test('takes no entry that does not follow', () => {
    const ring = new EntryRing(revision(5n));
    ring.push(sized(5, 1));
    for (const number of [4, 5, 7]) expect(() => ring.push(sized(number, 1))).toThrow(RangeError);
  });
});

test('a queue by revision is the same after many turns', () => {
  const queue = new RevisionQueue<number>(revision(1n));
  for (let i = 1; i <= 10_000; i += 1) {
    queue.push(i);
    if (queue.length > 700) expect(queue.dropOldest()).toBe(i - 700);
  }
  expect([queue.length, queue.first, queue.oldest()]).toEqual([700, 9_301n, 9_301]);
  expect([9_300n, 9_301n, 10_000n, 10_001n].map((n) => queue.at(revision(n)))).toEqual([undefined, 9_301, 10_000, undefined]);
});
