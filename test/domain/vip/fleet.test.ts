import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aid, type Nid, nid } from '../../../src/domain/link/model.js';
import {
  accountOfKey,
  decodeVipRecord,
  encodeVipRecord,
  holderAnswerFor,
  NO_RECORD,
  planVip,
  type VipPhase,
  type VipRecord,
  type VipSight,
  vipKey,
  vipPhases,
  vipWordFor,
} from '../../../src/domain/vip/fleet.js';

const [a, b, c] = [nid('a'), nid('b'), nid('c')];
const NOW = 1_000;
const sight = (more: Partial<VipSight> = {}): VipSight => {
  return { ageMs: 0, answer: undefined, candidates: [a, b, c], nodeState: 'online', now: NOW, ...more };
};
const record = (phase: VipPhase, node: Nid | '' = a, more: Partial<VipRecord> = {}): VipRecord => {
  return { generation: 7n, phase, node, wanted: '', failures: 0, since: 1, ...more };
};
/** `phase node generation wanted`, or `-`. */
const planned = (now: VipRecord, seen: Partial<VipSight> = {}) => {
  const next = planVip(now, sight(seen));
  return next === undefined ? '-' : `${next.phase} ${next.node} ${next.generation}${next.wanted && ` wanted ${next.wanted}`}`;
};

test.each([
  ['nobody has had it: the first', NO_RECORD, {}, 'assigning a 1'],
  ['the next after the last', record('free', a), {}, 'assigning b 8'],
  ['round again', record('free', c), {}, 'assigning a 8'],
  ['the last one is gone', record('free', b), { candidates: [a] }, 'assigning a 8'],
  ['nobody may', record('free'), { candidates: [] }, '-'],
  ['whom an operator wants', record('free', a, { wanted: c }), {}, 'assigning c 8 wanted c'],
  ['whom an operator wants, but cannot', record('free', a, { wanted: c }), { candidates: [a, b] }, 'assigning b 8 wanted c'],
  ['some did not take it: the next', record('free', a, { failures: 2 }), {}, 'assigning b 8'],
  ['all did not take it: a pause', record('free', a, { failures: 3 }), { ageMs: 14_999 }, '-'],
  ['all did not take it, after the pause', record('free', a, { failures: 3 }), { ageMs: 15_000 }, 'assigning b 8'],
  ['the pause is a minute at most', record('free', a, { failures: 900 }), { ageMs: 60_000 }, 'assigning b 8'],
  ['it is asked', record('assigning'), { ageMs: 4_999 }, '-'],
  ['it says yes', record('assigning'), { answer: 'ok' }, 'held a 7'],
  ['it says yes, and was wanted', record('assigning', a, { wanted: a }), { answer: 'ok' }, 'held a 7'],
  ['it says no', record('assigning'), { answer: 'refused' }, 'releasing a 8'],
  ['5 s of silence: taken back with a newer generation', record('assigning'), { ageMs: 5_000 }, 'releasing a 8'],
  [
    '5 s of silence of whom was wanted: others come next',
    record('assigning', a, { wanted: a }),
    { ageMs: 5_000 },
    'releasing a 8',
  ],
  ['it has it', record('held'), { ageMs: 1e9 }, '-'],
  ['it has it and another is wanted', record('held', a, { wanted: b }), {}, 'releasing a 8 wanted b'],
  ['it has it and one is wanted that cannot', record('held', a, { wanted: b }), { candidates: [a] }, '-'],
  ['it is not fit any more', record('held'), { candidates: [b] }, 'releasing a 8'],
  ['it is not fit any more, and nobody else is', record('held'), { candidates: [] }, '-'],
  ['it is gone for 30 s', record('held'), { candidates: [b], nodeState: 'offline' }, 'releasing a 8'],
  ['its server is gone', record('held'), { candidates: [b], nodeState: 'unknown' }, '-'],
  ['nothing is known of it yet', record('held'), { candidates: [b], nodeState: undefined, ageMs: 44_999 }, '-'],
  ['nothing is known of it any more', record('held'), { candidates: [b], nodeState: undefined, ageMs: 45_000 }, 'releasing a 8'],
  ['it has not said that it gave it back', record('releasing'), { ageMs: 29_999 }, '-'],
  ['30 s: it has lost it', record('releasing'), { ageMs: 30_000 }, 'free a 7'],
  ['it gave it back', record('releasing'), { answer: 'ok' }, 'free a 7'],
  ['it does not want to give it back', record('releasing'), { answer: 'refused', ageMs: 29_999 }, '-'],
  ['it is gone for 30 s meanwhile: another server may have it', record('releasing'), { nodeState: 'offline' }, '-'],
] as const)('%s', (_, now, seen, expected) => {
  expect(planned(now, seen)).toBe(expected);
});

test.each([
  ['free', a, 'other', false],
  ['assigning', a, 'holder', true],
  ['assigning', b, 'other', false],
  ['held', a, 'holder', true],
  ['releasing', a, 'other', false],
] as const)('of a record that is %s, %s is told %s', (phase, asks, word, isHolder) => {
  expect(vipWordFor(record(phase), asks, 0)).toBe(word);
  expect(holderAnswerFor(record(phase), asks)).toEqual({ isHolder, generation: 7n });
});

test('V1: of a record that was read more than 5 s ago, or never, nothing is said', () => {
  expect(vipWordFor(record('held'), a, 5_000)).toBe('holder');
  expect(vipWordFor(record('held'), a, 5_001)).toBe('unknown');
  expect(vipWordFor(record('held'), a, undefined)).toBe('unknown');
});

test('who takes it ends the row of failures', () => {
  const failed = record('assigning', a, { failures: 2 });
  expect(planVip(failed, sight({ ageMs: 5_000 }))?.failures).toBe(3);
  expect(planVip(failed, sight({ answer: 'ok' }))?.failures).toBe(0);
});

test('a record is read back as it was written, exact beyond 2^53', () => {
  const far = record('held', a, { generation: 2n ** 53n + 1n, wanted: b });
  expect(decodeVipRecord(encodeVipRecord(far))).toEqual(far);
  expect(accountOfKey(vipKey(aid('acme')))).toBe('acme');
});

test('generations only grow, and nobody is given it before the one who had it has lost it', () => {
  const seen = fc.record({
    ageMs: fc.constantFrom(0, 4_999, 5_000, 29_999, 30_000),
    answer: fc.constantFrom('ok' as const, 'refused' as const, undefined),
    candidates: fc.subarray([a, b, c]),
    nodeState: fc.constantFrom('online' as const, 'offline' as const, 'unknown' as const, undefined),
  });
  const start = fc.record({
    phase: fc.constantFrom(...vipPhases),
    node: fc.constantFrom(a, b),
    wanted: fc.constantFrom('' as const, a, c),
  });
  fc.assert(
    fc.property(start, fc.array(seen, { maxLength: 30 }), ({ phase, node, wanted }, sights) => {
      let now = record(phase, node, { wanted });
      for (const one of sights) {
        const next = planVip(now, sight(one));
        if (next === undefined) continue;
        expect(next.generation).toBeGreaterThanOrEqual(now.generation);
        if (next.node !== now.node) expect([now.phase, next.phase]).toEqual(['free', 'assigning']);
        if (next.phase === 'free') expect(now.phase === 'releasing' && (one.answer === 'ok' || one.ageMs >= 30_000)).toBe(true);
        if (next.phase === 'assigning' || next.phase === 'releasing') expect(next.generation).toBe(now.generation + 1n);
        now = next;
      }
    }),
  );
});
