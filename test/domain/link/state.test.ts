import { describe, expect, test } from 'vitest';
import { EpochFence } from '../../../src/domain/link/epoch-fence.js';
import { isDead } from '../../../src/domain/link/liveness.js';
import { epoch } from '../../../src/domain/link/model.js';
import { OwnTags } from '../../../src/domain/link/own-tags.js';
import { RateLimits, TokenBucket } from '../../../src/domain/link/rate-limit.js';

describe('C6: the path is dead', () => {
  const pulse = { now: 12_000, lastLookAt: 11_000, lastByteAt: 0, outstanding: true };
  test.each([
    { name: '12 s without a byte, a beat outstanding', more: {}, dead: true },
    { name: 'a moment less', more: { now: 11_999 }, dead: false },
    { name: 'nothing outstanding', more: { outstanding: false }, dead: false },
    { name: 'this process slept, and may not have read', more: { now: 60_000 }, dead: false },
    { name: 'and has looked again since', more: { now: 61_000, lastLookAt: 60_000 }, dead: true },
  ])('$name: $dead', ({ more, dead }) => expect(isDead({ ...pulse, ...more })).toBe(dead));
});

describe('B3: epochs', () => {
  test('below the highest of the same fleet are old', () => {
    const fence = new EpochFence();
    const admit = (fleet: string, value: bigint) => fence.admit(fleet, epoch(value));
    expect([admit('a', 3n), admit('a', 3n), admit('a', 5n), admit('a', 4n), admit('b', 1n), admit('a', 5n)]).toEqual([
      true,
      true,
      true,
      false,
      true,
      true,
    ]);
  });
});

describe('C2: tags of our own', () => {
  test('are known for 10 min', () => {
    const tags = new OwnTags();
    tags.add('a', 0);
    expect([tags.has('a', 600_000), tags.has('a', 600_001), tags.has('b', 0)]).toEqual([true, false, false]);
  });

  test('at most 1,000, the oldest go', () => {
    const tags = new OwnTags();
    for (let index = 0; index <= 1_000; index++) tags.add(`t${index}`, index);
    expect([tags.has('t0', 1_001), tags.has('t1', 1_001), tags.has('t1000', 1_001)]).toEqual([false, true, true]);
  });

  test('old ones go with new ones', () => {
    const tags = new OwnTags();
    tags.add('old', 0);
    tags.add('new', 700_000);
    expect([tags.has('old', 0), tags.has('new', 700_000)]).toEqual([false, true]);
  });
});

describe('I2: rates', () => {
  test('a burst, then the rate', () => {
    const bucket = new TokenBucket({ perSecond: 2, burst: 10 }, 0);
    const taken = (now: number) => bucket.take(now);
    expect(Array.from({ length: 11 }, () => taken(0)).filter(Boolean)).toHaveLength(10);
    expect(bucket.waitMs(0)).toBe(500);
    expect([taken(499), taken(500), taken(501), taken(1_000)]).toEqual([false, true, false, true]);
    expect([bucket.isFull(2_000), bucket.isFull(1_000_000)]).toEqual([false, true]);
  });

  test('each name has its own, and no more are kept than said', () => {
    const limits = new RateLimits({ perSecond: 1, burst: 1 }, 2);
    expect([limits.take('a', 0), limits.take('a', 0), limits.take('b', 0), limits.take('b', 0)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    // Both are empty: the oldest gives way, and the other does not.
    expect([limits.take('c', 1), limits.take('b', 2)]).toEqual([true, false]);
    // All are full again: they are forgotten.
    expect([limits.take('d', 10_000), limits.take('b', 10_000), limits.take('b', 10_000)]).toEqual([true, true, false]);
  });
});
