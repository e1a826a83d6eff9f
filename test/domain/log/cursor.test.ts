import { describe, expect, test } from 'vitest';
import { Pace, refuseCursor, SLOW_MS } from '../../../src/domain/log/cursor.js';
import { type Cursor, digest, logId, revision, ZERO_DIGEST } from '../../../src/domain/log/model.js';

const head: Cursor = { logId: logId('a'), revision: revision(9n), digest: digest('9'.repeat(64)) };

describe('refuseCursor', () => {
  test.each<{ name: string; from: Cursor; code: string | undefined }>([
    { name: 'the head', from: head, code: undefined },
    {
      name: 'the past: its digest is judged with the entry after it',
      from: { ...head, revision: revision(6n) },
      code: undefined,
    },
    { name: 'just before the oldest entry', from: { ...head, revision: revision(4n) }, code: undefined },
    { name: 'an entry earlier', from: { ...head, revision: revision(3n) }, code: 'log.compacted' },
    { name: 'ahead of the head', from: { ...head, revision: revision(10n) }, code: 'log.changed' },
    { name: 'another log', from: { ...head, logId: logId('b') }, code: 'log.changed' },
    { name: 'another log, long ago', from: { ...head, logId: logId('b'), revision: revision(1n) }, code: 'log.changed' },
    { name: 'another digest at the head', from: { ...head, digest: ZERO_DIGEST }, code: 'log.changed' },
  ])('$name', ({ from, code }) => expect(refuseCursor(from, { head, minimum: revision(5n) })?.code).toBe(code));
});

describe('pace', () => {
  test.each<{ name: string; seen: [now: number, behindSince: number | undefined][]; slow: boolean }>([
    {
      name: 'never behind',
      seen: [
        [0, undefined],
        [SLOW_MS * 2, undefined],
      ],
      slow: false,
    },
    { name: 'behind, not for long', seen: [[SLOW_MS, 1]], slow: false },
    { name: 'behind while it was not looked at', seen: [[SLOW_MS + 1, 1]], slow: true },
    {
      name: 'reading, but behind all the time',
      seen: [
        [10, 5],
        [SLOW_MS + 5, SLOW_MS],
      ],
      slow: true,
    },
    {
      name: 'caught up in between',
      seen: [
        [10, 5],
        [20, undefined],
        [SLOW_MS + 5, SLOW_MS],
      ],
      slow: false,
    },
    { name: 'a backlog from before it came', seen: [[SLOW_MS - 1, -90_000]], slow: false },
  ])('$name', ({ seen, slow }) => {
    const pace = new Pace(0);
    expect(seen.map(([now, since]) => pace.tooSlow(since, now)).at(-1)).toBe(slow);
  });
});
