import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { type OutboxEntry, outboxSequence, ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';
import { outboxContract } from '../../contract/outbox.contract.js';

outboxContract('memory', async () => new MemoryOutbox(8));

const options = { signal: new AbortController().signal };
const entry: OutboxEntry = { time: 0, kind: 'log', stream: 's', severity: 'debug', message: 'm', labels: {} };

describe('MemoryOutbox', () => {
  test('holds 4096 unless told otherwise', () => {
    expect(new MemoryOutbox().stats()).toEqual({ depth: 0, capacity: 4096, dropped: 0n, nextSequence: 1n });
  });

  test('a full one drops the oldest and counts it', async () => {
    const outbox = new MemoryOutbox(3);
    for (let count = 0; count < 5; count++) await outbox.append(entry, options);
    expect((await outbox.read(ZERO_SEQUENCE, 10, options)).map(({ sequence }) => sequence)).toEqual([3n, 4n, 5n]);
    expect(outbox.stats()).toEqual({ depth: 3, capacity: 3, dropped: 2n, nextSequence: 6n });
  });

  test('what was dropped can be confirmed, and is not counted as shipped', async () => {
    const outbox = new MemoryOutbox(2);
    for (let count = 0; count < 3; count++) await outbox.append(entry, options);
    await outbox.confirm(outboxSequence(1n), options);
    expect(outbox.stats()).toEqual({ depth: 2, capacity: 2, dropped: 1n, nextSequence: 4n });
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('a capacity of %s is refused', (capacity) => {
    expect(() => new MemoryOutbox(capacity)).toThrow(RangeError);
  });

  test('law: it is the list of unconfirmed records, cut to its capacity at the old end', async () => {
    const step = fc.oneof(fc.constant('append' as const), fc.bigInt({ min: 0n, max: 40n }));
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 40 }), async (capacity, steps) => {
        const outbox = new MemoryOutbox(capacity);
        let model: bigint[] = [];
        let next = 1n;
        let dropped = 0n;
        for (const each of steps) {
          if (each === 'append') {
            await outbox.append(entry, options);
            model.push(next++);
            if (model.length > capacity) dropped++;
            model = model.slice(-capacity);
          } else if (each < next) {
            await outbox.confirm(outboxSequence(each), options);
            model = model.filter((sequence) => sequence > each);
          }
          expect((await outbox.read(ZERO_SEQUENCE, 100, options)).map(({ sequence }) => sequence)).toEqual(model);
          expect(outbox.stats()).toEqual({ depth: model.length, capacity, dropped, nextSequence: next });
        }
      }),
    );
  });
});
