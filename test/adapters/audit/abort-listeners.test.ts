import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { AbortListeners } from '../../../src/adapters/audit/abort-listeners.js';

test('10,000 calls with one signal are one listener, which goes with the last of them', () => {
  const listeners = new AbortListeners();
  const { signal } = new AbortController();
  const removals = Array.from({ length: 10_000 }, () => listeners.add(signal, () => {}));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const remove of removals) remove();
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('an abort runs those of its own signal that were not removed, once', () => {
  const listeners = new AbortListeners();
  const [first, second] = [new AbortController(), new AbortController()];
  const ran: string[] = [];
  listeners.add(first.signal, () => ran.push('a'));
  const remove = listeners.add(first.signal, () => ran.push('removed'));
  listeners.add(first.signal, () => ran.push('b'));
  listeners.add(second.signal, () => ran.push('other'));
  remove();
  remove();
  first.abort();
  expect(ran).toEqual(['a', 'b']);
  expect(getEventListeners(first.signal, 'abort')).toEqual([]);
  second.abort();
  expect(ran).toEqual(['a', 'b', 'other']);
});

test('after the last one went, a signal can be listened to again', () => {
  const listeners = new AbortListeners();
  const abort = new AbortController();
  listeners.add(abort.signal, () => {})();
  let ran = 0;
  listeners.add(abort.signal, () => {
    ran++;
  });
  abort.abort();
  expect(ran).toBe(1);
});
