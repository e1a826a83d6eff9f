import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeRow,
  encodeRow,
  type InstructionRow,
  type KeptRow,
  orderOf,
  RESULT_KEPT_MS,
} from '../../../src/domain/dispatch/model.js';
import {
  answered,
  cancelled,
  claimed,
  delivered,
  dueAt,
  judgeReply,
  planNode,
  type StreamView,
  settled,
  waitsFor,
} from '../../../src/domain/dispatch/plan.js';
import { epoch, registrationId } from '../../../src/domain/link/model.js';
import { n1, tagOf } from '../../support/fleet-rig.js';

const r1 = registrationId('r1');
const r2 = registrationId('r2');
const body = { pieces: 1, bytes: 2, digest: 'd' };
const NOW = 100_000;

function kept(tag: string, version: bigint, row: Partial<InstructionRow> = {}): KeptRow {
  const base = { nid: n1, registration: r1, tag: tagOf(tag), type: 'GET_NODE_STATUS', request: body, by: 'local:0' };
  const times = { issuedAt: 0, expiresAt: 3_600_000, answerMs: 30_000 };
  return { row: { ...base, ...times, state: 'pending', ...row }, version };
}

const onEpoch = (number: bigint, more: Partial<InstructionRow> = {}): Partial<InstructionRow> => ({
  ...{ state: 'delivered', epoch: epoch(number), deliveredAt: NOW - 1_000, journal: 'j1' },
  ...more,
});

const stream = (view: Partial<StreamView> = {}): StreamView => ({
  ...{ registration: r1, epoch: epoch(5n), journal: 'j1', forgottenBefore: epoch(0n), canCancel: true, canUpdate: false },
  ...{ sent: new Set(), cancelled: new Set() },
  ...view,
});

function plan(open: readonly KeptRow[], view: StreamView | 'none' = stream(), more = {}) {
  const current = view === 'none' ? undefined : view;
  const { settle, deliver, cancel } = planNode(open, { stream: current, now: NOW, window: 3, mayDeliver: true, ...more });
  return {
    settle: settle.map(({ kept: { row }, state }) => `${row.tag} ${state}`),
    deliver: deliver.map(({ row }) => row.tag),
    cancel: cancel.map(({ row }) => row.tag),
  };
}
const nothing = { settle: [], deliver: [], cancel: [] };

describe('what is sent', () => {
  test('in the order of issue, whatever was rewritten since', () => {
    const open = [kept('c', 9n), kept('a', 12n, { order: 3n, state: 'claimed', epoch: epoch(4n) }), kept('b', 5n)];
    expect(plan(open).deliver).toEqual(['a', 'b', 'c']);
  });

  test('D3: no more than the window, with what is unanswered on this stream', () => {
    const open = ['a', 'b', 'c', 'd', 'e'].map((tag, i) => kept(tag, BigInt(i + 1)));
    expect(plan(open).deliver).toEqual(['a', 'b', 'c']);
    const sent = [kept('x', 1n, onEpoch(5n)), kept('y', 2n, onEpoch(5n))];
    expect(plan([...open, ...sent], stream({ sent: new Set(['x', 'y']) })).deliver).toEqual(['a']);
  });

  test('nothing without a stream, or while deliveries are held back', () => {
    expect(plan([kept('a', 1n)], 'none')).toEqual(nothing);
    expect(plan([kept('a', 1n)], stream(), { mayDeliver: false })).toEqual(nothing);
  });

  test('A14: again on a later stream, to an agent that drops what it has seen', () => {
    expect(plan([kept('a', 1n, onEpoch(4n))]).deliver).toEqual(['a']);
  });

  test('A14: never again to one that cannot deduplicate', () => {
    const open = [kept('a', 1n, onEpoch(4n, { journal: undefined }))];
    expect(plan(open)).toEqual(nothing);
    expect(plan(open, stream({ journal: undefined }))).toEqual(nothing);
  });

  test('what was marked for this stream and never sent on it, also to one that cannot deduplicate', () => {
    expect(plan([kept('a', 1n, onEpoch(5n, { journal: undefined }))], stream({ journal: undefined })).deliver).toEqual(['a']);
  });

  test('UPDATE_AGENT only to an agent that knows it', () => {
    const open = [kept('a', 1n, { type: 'UPDATE_AGENT' })];
    expect(plan(open)).toEqual({ ...nothing, settle: ['a cancelled'] });
    expect(plan(open, stream({ canUpdate: true })).deliver).toEqual(['a']);
    expect(plan(open, 'none')).toEqual(nothing);
  });

  test('A11: never after its expiry, also not again', () => {
    const expiresAt = NOW;
    expect(plan([kept('a', 1n, { expiresAt }), kept('b', 2n, onEpoch(4n, { expiresAt }))])).toEqual({
      ...nothing,
      settle: ['a expired'],
    });
    expect(plan([kept('a', 1n, { expiresAt })], 'none').settle).toEqual(['a expired']);
  });
});

describe('what ends without a reply', () => {
  test('A14: no answer in time of an agent that keeps no journal', () => {
    const row = onEpoch(4n, { journal: undefined, deliveredAt: NOW - 30_000 });
    expect(plan([kept('a', 1n, row)]).settle).toEqual(['a unknown']);
    expect(plan([kept('a', 1n, { ...row, deliveredAt: NOW - 29_999 })]).settle).toEqual([]);
    expect(plan([kept('a', 1n, row)], 'none').settle).toEqual(['a unknown']);
  });

  test.each([
    ['another journal', stream({ journal: 'j2' })],
    ['an older copy of the same', stream({ forgottenBefore: epoch(5n) })],
    ['none any more', stream({ journal: undefined })],
  ])('A12: what was delivered under a journal that is lost: %s', (_, view) => {
    expect(plan([kept('a', 1n, onEpoch(4n))], view).settle).toEqual(['a unknown']);
    expect(plan([kept('a', 1n, onEpoch(5n))], { ...view, sent: new Set(['a']) }).settle).toEqual([]);
  });

  test('A13: another registration cancels what was not sent, and will not answer the rest', () => {
    const open = [kept('a', 1n), kept('b', 2n, { state: 'claimed', epoch: epoch(1n) }), kept('c', 3n, onEpoch(1n))];
    expect(plan(open, stream({ registration: r2 })).settle).toEqual(['a cancelled', 'b cancelled', 'c unknown']);
    expect(plan(open, 'none').settle).toEqual([]);
  });

  test('a result that never came, when no agent keeps it any more', () => {
    const { row } = kept('a', 1n, onEpoch(4n));
    expect(dueAt(row)).toBe(3_600_000 + 30_000 + RESULT_KEPT_MS);
    expect(dueAt({ ...row, state: 'pending' })).toBe(3_600_000);
  });
});

describe('A17: cancelling', () => {
  test('asks on the stream that it was sent on, once, where the agent can', () => {
    const open = [kept('a', 1n, onEpoch(5n, { cancelAsked: true })), kept('b', 2n, onEpoch(5n))];
    const sent = new Set(['a', 'b']);
    expect(plan(open, stream({ sent })).cancel).toEqual(['a']);
    expect(plan(open, stream({ sent, cancelled: new Set(['a']) })).cancel).toEqual([]);
    expect(plan(open, stream({ sent, canCancel: false })).cancel).toEqual([]);
  });

  test('what was not sent ends at once, what was is asked for', () => {
    expect(cancelled(kept('a', 7n), NOW)).toMatchObject({ state: 'cancelled', finishedAt: NOW, order: 7n });
    expect(cancelled(kept('a', 7n, onEpoch(5n)), NOW)).toMatchObject({ state: 'delivered', cancelAsked: true });
  });
});

describe('A14: a result', () => {
  test.each([
    ['of a delivered one', 'delivered', 'first'],
    ['that comes after all', 'unknown', 'first'],
    ['of one whose delivery the store has lost', 'pending', 'first'],
    ['a second one', 'done', 'again'],
    ['of what was never sent', 'cancelled', 'stray'],
    ['of what could not be sent', 'expired', 'stray'],
  ] as const)('%s', (_, state, expected) => {
    expect(judgeReply(kept('a', 1n, { state }), r1)).toBe(expected);
  });

  test('of nothing known, or of another registration, is none', () => {
    expect(judgeReply(undefined, r1)).toBe('stray');
    expect(judgeReply(kept('a', 1n, { state: 'delivered' }), r2)).toBe('stray');
  });
});

test('what an unfinished one waits for', () => {
  const { row } = kept('a', 1n);
  const there = { connected: true, held: '' };
  expect(waitsFor(row, { connected: false, held: 'x' })).toBe('the node to connect');
  expect(waitsFor(row, there)).toBe('its turn');
  expect(waitsFor(row, { connected: true, held: 'the node to be uncordoned' })).toBe('the node to be uncordoned');
  expect(waitsFor({ ...row, state: 'delivered' }, there)).toBe('the answer of the node');
  expect(waitsFor({ ...row, state: 'delivered', cancelAsked: true }, there)).toMatch(/cancelled/);
});

test('rows are read back as they were written', () => {
  const one = kept('a', 7n);
  const rows = [
    one.row,
    claimed(one, epoch(3n)),
    delivered(one, { epoch: epoch(3n), journal: 'j' }, NOW),
    settled({ kept: one, state: 'unknown', reason: 'r' }, NOW),
    answered(one, { type: 'T', body }, NOW),
  ];
  for (const row of rows) expect(decodeRow(encodeRow(row))).toEqual(JSON.parse(JSON.stringify(row, bigints), unbigint));
  expect(rows.slice(1).map((row) => orderOf({ row, version: 99n }))).toEqual([7n, 7n, 7n, 7n]);
});

const bigints = (_: string, value: unknown) => (typeof value === 'bigint' ? `bigint ${value}` : value);
const unbigint = (_: string, value: unknown) =>
  typeof value === 'string' && value.startsWith('bigint ') ? BigInt(value.slice(7)) : value;

test('law: a plan that is carried out plans nothing more', () => {
  const anyRow = fc.record({
    state: fc.constantFrom('pending' as const, 'claimed' as const, 'delivered' as const),
    registration: fc.constantFrom(r1, r2),
    epoch: fc.constantFrom(epoch(4n), epoch(5n)),
    journal: fc.constantFrom('j1', 'j2', undefined),
    expiresAt: fc.constantFrom(NOW - 1, NOW + 1_000_000),
    deliveredAt: fc.constantFrom(NOW - 50_000, NOW - 1),
    cancelAsked: fc.boolean(),
  });
  const anyStream = fc.record({
    forgottenBefore: fc.constantFrom(epoch(0n), epoch(5n)),
    journal: fc.constantFrom('j1', 'j2', undefined),
    canCancel: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 12 }), anyStream, fc.integer({ min: 0, max: 6 }), (rows, view, window) => {
      const first = stream(view);
      const open = rows.map((row, i) => kept(`t${i}`, BigInt(i + 1), row));
      const planned = planNode(open, { stream: first, now: NOW, window, mayDeliver: true });
      const gone = new Set(planned.settle.map(({ kept: each }) => each));
      const sent = new Set(planned.deliver.map(({ row }) => row.tag));
      const after = open
        .filter((each) => !gone.has(each))
        .map((each) => (sent.has(each.row.tag) ? { row: delivered(each, first, NOW), version: each.version } : each));
      const asked = new Set(open.map(({ row }) => row.tag));
      const again = planNode(after, { stream: { ...first, sent, cancelled: asked }, now: NOW, window, mayDeliver: true });
      expect(again).toEqual({ settle: [], deliver: [], cancel: [] });
      expect(sent.size).toBeLessThanOrEqual(window);
    }),
  );
});
