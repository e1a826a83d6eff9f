import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type HeldReply, MOST_REPLIES, MOST_REPLY_BYTES, repliesToDrop } from '../../../src/domain/instruction/retention.js';
import { isForeignType, isReplyType, OwnTags } from '../../../src/domain/instruction/unanswered.js';

const HOUR = 3_600_000;
const NOW = 100 * HOUR;
const held = (id: string, finishedAt: number, ackedAt?: number, bytes = 100): HeldReply => ({
  ...{ id, bytes, finishedAt, ackedAt, secret: false },
});

describe('A9: replies', () => {
  test.each<[string, readonly HeldReply[], readonly string[]]>([
    ['acknowledged an hour ago', [held('a', NOW - 2 * HOUR, NOW - HOUR), held('b', NOW - 2 * HOUR, NOW - HOUR + 1)], ['a']],
    ['not acknowledged for 24 h', [held('a', NOW - 24 * HOUR), held('b', NOW - 24 * HOUR + 1)], ['a']],
    [
      'too large together: the oldest',
      [held('a', 1 + NOW - HOUR, undefined, MOST_REPLY_BYTES), held('b', 2 + NOW - HOUR)],
      ['a'],
    ],
    [
      'too large together: acknowledged ones first',
      [held('a', NOW - 2, undefined, MOST_REPLY_BYTES - 100), held('b', NOW - 1, NOW, 200)],
      ['b'],
    ],
  ])('%s', (_, replies, dropped) => {
    expect(repliesToDrop(replies, NOW)).toEqual(dropped);
  });

  test.each<[string, Partial<HeldReply>, boolean]>([
    ['that was acknowledged goes', { finishedAt: NOW - 1, ackedAt: NOW }, true],
    ['that nobody takes goes after 10 minutes', { finishedAt: NOW - 600_000 }, true],
    ['that is younger stays', { finishedAt: NOW - 599_999 }, false],
  ])('A8: a secret %s', (_, facts, goes) => {
    expect(repliesToDrop([{ ...held('a', NOW), ...facts, secret: true }], NOW)).toEqual(goes ? ['a'] : []);
  });

  test('1,000 at most: acknowledged ones go first, the oldest before younger ones', () => {
    const replies = Array.from({ length: MOST_REPLIES + 3 }, (_, n) => held(`${n}`, NOW - HOUR + n, n === 500 ? NOW : undefined));
    expect(new Set(repliesToDrop(replies, NOW))).toEqual(new Set(['500', '0', '1']));
  });

  test('laws: what stays is within the limits, and dropping twice drops nothing', () => {
    const reply = fc.record({
      bytes: fc.nat(MOST_REPLY_BYTES / 4),
      finishedAt: fc.integer({ min: NOW - 30 * HOUR, max: NOW }),
      ackedAt: fc.option(fc.integer({ min: NOW - 3 * HOUR, max: NOW }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 60 }), (facts) => {
        const replies = facts.map((each, place) => ({ id: `${place}`, secret: place % 7 === 0, ...each }));
        const dropped = new Set(repliesToDrop(replies, NOW));
        const kept = replies.filter(({ id }) => !dropped.has(id));
        expect(kept.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(MOST_REPLY_BYTES);
        expect(repliesToDrop(kept, NOW)).toEqual([]);
      }),
    );
  });
});

describe('C2: what is never answered', () => {
  test.each([
    ['', true],
    ['ERROR', true],
    ['RESULT_ACK', true],
    ['VIP_ASSIGN_RESPONSE', true],
    ['AmIVIPHolderResponse', true],
    ['NODE_STATUS', true],
    ['GET_NODE_STATUS', false],
    ['RUN_WEB_REQUEST', false],
    ['RESPONSE_OF_X', false],
    ['AmIVIPHolder', false],
  ])('%j: %s', (type, never) => {
    expect(isReplyType(type)).toBe(never);
  });

  test('sessions and the link have types of their own', () => {
    expect(['OPEN_STREAM', 'DRAINING', 'GET_NODE_STATUS'].map(isForeignType)).toEqual([true, true, false]);
  });

  test('own tags are known for ten minutes, the last 1,000 of them', () => {
    const tags = new OwnTags();
    tags.add('first', 0);
    for (let number = 0; number < 999; number++) tags.add(`${number}`, 1);
    expect([tags.has('first', 599_999), tags.has('first', 600_000), tags.has('other', 1)]).toEqual([true, false, false]);
    tags.add('one more', 2);
    expect([tags.has('first', 2), tags.has('0', 2), tags.has('one more', 2)]).toEqual([false, true, true]);
    tags.add('0', 500_000);
    expect(tags.has('0', 1_000_000)).toBe(true);
  });
});
