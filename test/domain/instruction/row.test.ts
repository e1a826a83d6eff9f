import { describe, expect, test } from 'vitest';
import type { Tag } from '../../../src/domain/instruction/model.js';
import { keyText, tag } from '../../../src/domain/instruction/model.js';
import { replay } from '../../../src/domain/instruction/replay.js';
import {
  afterRestart,
  interruptedText,
  isExpired,
  type RestartDecision,
  type TaskEvidence,
} from '../../../src/domain/instruction/restart.js';
import {
  ackedRow,
  finishedRow,
  handedRow,
  isFinished,
  type Row,
  receivedRow,
  startedRow,
  tombstoneOf,
} from '../../../src/domain/instruction/row.js';

const received = receivedRow({
  ...{
    fleet: 'f',
    tag: 't' as Tag,
    type: 'RUN_REMOTE_SCRIPT',
    digest: 'd',
    payloadDigest: 'p',
    who: 'w',
    lanes: [],
    repeat: 'never',
  },
  ...{ epoch: undefined, receivedAt: 1_000, expiresAt: undefined, waiterMs: 1, boot: 'b', task: undefined, background: false },
});
const started = startedRow(received);
/** On both clocks, where 10 s on the wall are 0.5 s since the start of the machine. */
const expiring = (expiresAtBoot: number) => ({ expiresAt: 9_500 + expiresAtBoot, expiresAtBoot });
const finished = finishedRow(started, 'done', 2_000);

describe('A1: received, started, finished, handed, acked', () => {
  test('in this order', () => {
    expect(received).toMatchObject({ state: 'received', attempt: 0, outcome: undefined });
    expect(started).toMatchObject({ state: 'started', attempt: 1 });
    expect(startedRow(started)).toMatchObject({ state: 'started', attempt: 2 });
    expect(finished).toMatchObject({ state: 'finished', outcome: 'done', finishedAt: 2_000 });
    expect(handedRow(finished)).toMatchObject({ state: 'handed' });
    expect(ackedRow(handedRow(finished), 3_000)).toMatchObject({ state: 'acked', ackedAt: 3_000 });
    expect([received, started, finished, handedRow(finished), ackedRow(finished, 1)].map(isFinished)).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
  });

  test('what was refused never started', () => {
    expect(finishedRow(received, 'refused', 2_000)).toMatchObject({ state: 'finished', outcome: 'refused', attempt: 0 });
  });

  test('nothing starts or finishes after its end', () => {
    for (const row of [finished, handedRow(finished), ackedRow(finished, 1)]) {
      expect(() => startedRow(row)).toThrow(RangeError);
      expect(() => finishedRow(row, 'failed', 1)).toThrow(RangeError);
    }
  });

  test('A9: a tombstone still tells a repeat from another instruction', () => {
    const tombstone = tombstoneOf({ ...ackedRow(finished, 3_000), lanes: ['a'], step: 'body 1' });
    expect(tombstone).toEqual({ ...ackedRow(finished, 3_000), payloadDigest: '', who: '', boot: '' });
    expect(replay(tombstone, 'd', false, String)).toMatchObject({ rule: 'RESULT_EXPIRED' });
    expect(replay(tombstone, 'e', false, String)).toMatchObject({ rule: 'TAG_REUSED' });
  });

  test('C1: an acknowledgement of what is not finished, or twice, changes nothing', () => {
    for (const row of [received, started]) {
      expect(ackedRow(row, 1)).toBe(row);
      expect(handedRow(row)).toBe(row);
    }
    const acked = ackedRow(finished, 5);
    expect(ackedRow(acked, 9)).toBe(acked);
    expect(handedRow(acked)).toBe(acked);
  });
});

describe('A5 to A8: after a restart', () => {
  const repeatable: Row = { ...started, repeat: 'repeat' };
  const second = startedRow(repeatable);
  test.each<[string, Row, TaskEvidence, boolean, RestartDecision]>([
    ['a result is offered', finished, undefined, false, 'offer'],
    ['also one that was handed over', handedRow(finished), undefined, false, 'offer'],
    ['what was only received had no effect', received, undefined, true, 'not_started'],
    ['its task runs', started, 'running', false, 'adopt'],
    ['its task has ended', started, 'exited', false, 'adopt'],
    ['its task is gone', started, 'interrupted', false, 'interrupted'],
    ['its task never began', started, 'not_started', false, 'not_started'],
    ['it has no task: nobody knows', started, undefined, false, 'interrupted'],
    ['it may run again', repeatable, 'interrupted', true, 'rerun'],
    ['it may run again, but is adopted', repeatable, 'running', true, 'adopt'],
    ['it may run again, without its payload', repeatable, 'interrupted', false, 'interrupted'],
    ['the second death is final', second, 'interrupted', true, 'interrupted'],
    ['also when its task never began', second, 'not_started', true, 'interrupted'],
    ['its time is over', { ...repeatable, ...expiring(500) }, undefined, true, 'interrupted'],
    ['its time is not over', { ...repeatable, ...expiring(501) }, undefined, true, 'rerun'],
  ])('%s', (_, row, evidence, hasPayload, decision) => {
    expect(afterRestart(row, evidence, hasPayload, { wall: 10_000, boot: 'b', bootTime: 500 })).toBe(decision);
  });

  test.each([
    { name: 'the boot-time clock counts, wherever the wall clock was set ahead', wall: 7_210_000, boot: 'b', expired: false },
    { name: 'or back', wall: -7_190_000, boot: 'b', expired: false },
    { name: 'after another start of the machine the wall clock does: before', wall: 10_500, boot: 'c', expired: false },
    { name: 'and after', wall: 10_501, boot: 'c', expired: true },
    { name: 'one that has gone back tells nothing', wall: 999, boot: 'c', expired: true },
  ])('A11: $name', ({ wall, boot, expired }) => {
    const row = { ...started, receivedAt: 1_000, expiresAt: 10_501, expiresAtBoot: 501 };
    expect(isExpired(row, { wall, boot, bootTime: 500 })).toBe(expired);
  });

  test('A11: over on the boot-time clock, whatever the wall clock says; and never without an expiry', () => {
    const row = { ...started, expiresAt: 10_000, expiresAtBoot: 500 };
    for (const wall of [0, 9_999, 10_000, 7_210_000]) {
      expect(isExpired(row, { wall, boot: 'b', bootTime: 500 })).toBe(true);
      expect(isExpired(started, { wall, boot: 'b', bootTime: 500 })).toBe(false);
    }
  });

  test('A11: what an older version has journalled has the wall clock alone', () => {
    const row = { ...started, expiresAt: 10_000 };
    expect(isExpired(row, { wall: 9_999, boot: 'b', bootTime: 1e9 })).toBe(false);
    expect(isExpired(row, { wall: 10_000, boot: 'b', bootTime: 0 })).toBe(true);
  });

  test('the text begins with INTERRUPTED and says how far it was', () => {
    expect(interruptedText(started)).toMatch(/^INTERRUPTED: it was started; /);
    expect(interruptedText({ ...second, step: 'body 12' })).toMatch(/^INTERRUPTED \(attempt 2\): it had reached: body 12; /);
  });
});

describe('A9, A10: a tag that is known', () => {
  test.each<[string, Row, string, boolean, object]>([
    ['waits', received, 'd', false, { kind: 'attach' }],
    ['runs', started, 'd', false, { kind: 'attach' }],
    ['has a reply', finished, 'd', true, { kind: 'answer' }],
    ['is a tombstone', finished, 'd', false, { kind: 'refuse', rule: 'RESULT_EXPIRED' }],
    ['is another instruction', started, 'e', false, { kind: 'refuse', rule: 'TAG_REUSED' }],
    ['was another instruction', finished, 'e', true, { kind: 'refuse', rule: 'TAG_REUSED' }],
  ])('%s', (_, row, digest, hasReply, expected) => {
    expect(replay(row, digest, hasReply, String)).toMatchObject(expected);
  });

  test('a tombstone says when it ran and how it ended', () => {
    expect(replay(finished, 'd', false, (ms) => `T${ms}`)).toMatchObject({
      text: expect.stringMatching(/^RESULT_EXPIRED: ran at T2000, outcome done; /),
    });
  });
});

test('A10: tags are 1 to 128 printable characters; a key is one text', () => {
  for (const text of ['a', 'x'.repeat(128), 'a b/c']) expect(tag(text)).toBe(text);
  for (const text of ['', 'x'.repeat(129), 'a\n', 'ü', '\x7f']) expect(tag(text)).toBeUndefined();
  expect(keyText({ fleet: 'f', tag: 't' as Tag })).toBe('f\nt');
});
