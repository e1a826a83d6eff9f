import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DueQueue } from '../../../src/domain/kernel/due-queue.js';

test('takes what is due, the earliest first', () => {
  const queue = new DueQueue<string>();
  expect([queue.next(), queue.take(100)]).toEqual([undefined, undefined]);
  for (const [key, due] of [
    ['b', 20],
    ['a', 10],
    ['c', 30],
  ] as const)
    queue.set(key, due);
  queue.set('b', 5);
  queue.delete('a');
  expect([queue.size, queue.next()]).toEqual([2, 5]);
  expect([queue.take(4), queue.take(5), queue.take(5), queue.take(30), queue.take(30)]).toEqual([
    undefined,
    'b',
    undefined,
    'c',
    undefined,
  ]);
});

test('law: as a list that is searched', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('set' as const), key: fc.nat(20), due: fc.nat(50) }),
    fc.record({ do: fc.constant('delete' as const), key: fc.nat(20) }),
    fc.record({ do: fc.constant('take' as const), now: fc.nat(50) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const queue = new DueQueue<number>();
      const list = new Map<number, number>();
      for (const one of steps) {
        if (one.do === 'set') {
          queue.set(one.key, one.due);
          list.set(one.key, one.due);
        } else if (one.do === 'delete') {
          queue.delete(one.key);
          list.delete(one.key);
        } else {
          const earliest = Math.min(...list.values());
          const taken = queue.take(one.now);
          expect(taken === undefined ? undefined : list.get(taken)).toBe(earliest <= one.now ? earliest : undefined);
          if (taken !== undefined) list.delete(taken);
        }
        expect(queue.size).toBe(list.size);
        expect(queue.next()).toBe(list.size === 0 ? undefined : Math.min(...list.values()));
      }
    }),
  );
});

test('an earlier time replaces a later one, and not the other way round', () => {
  const queue = new DueQueue<string>();
  queue.setEarlier('a', 5);
  queue.setEarlier('a', 9);
  expect(queue.next()).toBe(5);
  queue.setEarlier('a', 3);
  expect([queue.take(2), queue.take(3), queue.size]).toEqual([undefined, 'a', 0]);
});
