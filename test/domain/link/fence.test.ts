import { describe, expect, test } from 'vitest';
import {
  addChange,
  holdMs,
  isContested,
  judgeArrival,
  judgeClone,
  recentChanges,
  type StreamChanges,
} from '../../../src/domain/link/fence.js';

const party = (instance: string, session: number, boot: string, hardware: string) => ({
  agent: { instance, session, boot, hardware },
  address: '192.0.2.1:1',
});
const older = { agent: undefined, address: '192.0.2.9:1' };
const present = party('i1', 5, 'b1', 'h1');

describe('B4: a second stream', () => {
  test.each([
    ['the first of its node', undefined, present, 'takes_over'],
    ['same instance, newer session', present, party('i1', 6, 'b1', 'h1'), 'takes_over'],
    ['same instance, older session', present, party('i1', 4, 'b1', 'h1'), 'is_old'],
    ['same instance, same session', present, party('i1', 5, 'b1', 'h1'), 'is_old'],
    ['a restart: same boot and hardware', present, party('i2', 1, 'b1', 'h1'), 'takes_over'],
    ['another boot', present, party('i2', 1, 'b2', 'h1'), 'waits'],
    ['other hardware', present, party('i2', 1, 'b1', 'h2'), 'waits'],
    ['an older agent comes', present, older, 'takes_over'],
    ['an older agent was there', older, present, 'takes_over'],
  ] as const)('%s', (_, first, second, expected) => {
    expect(judgeArrival(first, second)).toBe(expected);
  });

  test.each([
    ['the first is the registered one', 'h1', 'h1', 'h2', 'present'],
    ['the newcomer is the registered one', 'h2', 'h1', 'h2', 'newcomer'],
    ['neither is', 'h3', 'h1', 'h2', 'present'],
    ['both are: the disk was cloned with its machine', 'h1', 'h1', 'h1', 'present'],
    ['none was registered', undefined, 'h1', 'h2', 'present'],
  ] as const)('of two that are alive: %s', (_, registered, first, second, expected) => {
    expect(judgeClone(registered, party('i1', 1, 'b1', first), party('i2', 1, 'b2', second))).toBe(expected);
  });
});

describe('B4: older agents', () => {
  const changes = (...items: readonly (readonly [number, string])[]) =>
    items.reduce<StreamChanges>((all, [at, host]) => addChange(all, `${host}:1`, at), []);

  test.each([
    ['three changes', changes([0, 'a'], [1, 'b'], [2, 'a']), false],
    ['four from two addresses', changes([0, 'a'], [1, 'b'], [2, 'a'], [3, 'b']), true],
    ['four from one: a bad line', changes([0, 'a'], [1, 'a'], [2, 'a'], [3, 'a']), false],
    ['four in more than a minute', changes([0, 'a'], [1, 'b'], [2, 'a'], [60_000, 'b']), false],
    ['of two ports of an IPv6 address', changes([0, '[::1]'], [1, '[::1]'], [2, '[::1]'], [3, '[::1]']), false],
  ])('%s', (_, all, expected) => {
    expect(isContested(all)).toBe(expected);
  });

  test('nothing is delivered until one was alone for 15 s', () => {
    const all = changes([0, 'a'], [1, 'b'], [2, 'a'], [1_000, 'b']);
    expect([1_000, 15_999, 16_000, 20_000].map((now) => holdMs(all, now))).toEqual([15_000, 1, 0, 0]);
    expect(holdMs(changes([0, 'a']), 0)).toBe(0);
    expect(recentChanges(all, 61_000)).toEqual([]);
  });
});
