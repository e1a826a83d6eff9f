import { describe, expect, test } from 'vitest';
import { revision } from '../../../src/domain/log/model.js';
import { DROPPED_PER_COMMIT, RetainedEntries, type RetainedEntry } from '../../../src/domain/log/retention.js';

const limits = { changes: 10, ms: 1_000 };
const entry = (changes: number, time = 0, size = 1, requestId?: string): RetainedEntry => ({ changes, time, size, requestId });

function retained(...entries: readonly RetainedEntry[]): RetainedEntries {
  const index = new RetainedEntries(revision(1n), limits);
  for (const [i, each] of entries.entries()) index.push(each, i * 100);
  return index;
}

describe('retention', () => {
  test.each<{ name: string; kept: RetainedEntry[]; coming: RetainedEntry[]; minimum: bigint }>([
    { name: 'nothing kept, nothing coming', kept: [], coming: [], minimum: 1n },
    { name: 'few and young: all stay', kept: [entry(3), entry(3)], coming: [entry(3)], minimum: 1n },
    {
      name: 'an entry stays while any of its changes is among the newest',
      kept: [entry(5), entry(5)],
      coming: [entry(4)],
      minimum: 1n,
    },
    { name: 'it goes when all are older', kept: [entry(5), entry(5)], coming: [entry(5)], minimum: 2n },
    { name: 'one large entry drives out all before it', kept: [entry(1), entry(1), entry(1)], coming: [entry(500)], minimum: 4n },
    { name: 'of several that come, all count', kept: [entry(1), entry(1)], coming: [entry(5), entry(5)], minimum: 3n },
    { name: 'old ones go by log time', kept: [entry(1, 0), entry(1, 1), entry(1, 500)], coming: [entry(1, 1_001)], minimum: 2n },
    {
      name: 'time goes on: only the coming one stays',
      kept: [entry(1, 0), entry(1, 1)],
      coming: [entry(1, 90_000)],
      minimum: 3n,
    },
    { name: 'a large old entry stays while it is the last', kept: [entry(500, 0)], coming: [], minimum: 1n },
  ])('$name', ({ kept, coming, minimum }) => expect(retained(...kept).minimumAfter(coming)).toBe(minimum));

  test('deciding changes nothing; dropping does, with the request ids', () => {
    const index = retained(entry(5, 0, 1, 'first'), entry(5, 0, 1, 'second'));
    const minimum = index.minimumAfter([entry(5)]);
    expect([index.minimum, index.answered('first')]).toEqual([1n, 1n]);
    index.push(entry(5), 300);
    index.dropBefore(minimum);
    expect([index.minimum, index.answered('first'), index.answered('second')]).toEqual([2n, undefined, 2n]);
  });

  test('a day of old entries goes by and by', () => {
    const index = retained(...Array.from({ length: 3_000 }, () => entry(0)));
    const minimum = index.minimumAfter([entry(1, 90_000)]);
    expect(minimum).toBe(BigInt(DROPPED_PER_COMMIT) + 2n);
    index.push(entry(1, 90_000), 0);
    index.dropBefore(minimum);
    expect(index.minimumAfter([entry(1, 90_000)])).toBe(minimum + BigInt(DROPPED_PER_COMMIT) + 1n);
  });

  test('since when a reader holds back more than a size', () => {
    const index = retained(...[4, 4, 4, 4, 4].map((size) => entry(0, 0, size)));
    const since = (place: bigint): number | undefined => index.behindSince(revision(place), 8);
    expect([0n, 1n, 2n, 3n, 4n, 5n].map(since)).toEqual([200, 300, 400, undefined, undefined, undefined]);
    index.dropBefore(revision(3n));
    expect([1n, 2n, 3n, 5n].map(since)).toEqual([400, 400, undefined, undefined]);
  });
});
