import { expect, test } from 'vitest';
import { ListenerNumbers } from '../../../src/adapters/dataplane/listener-numbers.js';
import type { ListenerId } from '../../../src/domain/dataplane/model.js';

const [a, b] = ['a/a/a', 'b/b/b'] as ListenerId[] as [ListenerId, ListenerId];

test('one number per listener, kept while it is gone', () => {
  const numbers = new ListenerNumbers();
  expect([numbers.take(a), numbers.take(b), numbers.take(a)]).toEqual([1, 2, 1]);
  numbers.release(a);
  expect([numbers.of(a), numbers.nameOf(1)]).toEqual([undefined, a]);
  expect(numbers.take(a)).toBe(1);
});

test('the oldest that are gone are forgotten', () => {
  const numbers = new ListenerNumbers();
  numbers.take(b);
  for (let index = 0; index <= 16_384; index++) {
    const id = `n/${index}/p` as ListenerId;
    numbers.take(id);
    numbers.release(id);
  }
  expect([numbers.nameOf(1), numbers.nameOf(2), numbers.nameOf(3)]).toEqual([b, undefined, 'n/1/p']);
});
