import { describe, expect, test } from 'vitest';
import type { InstructionRow, KeptRow } from '../../../src/domain/dispatch/model.js';
import { KEPT_IN_ALL, KEPT_MS, KEPT_PER_NODE, overdue } from '../../../src/domain/dispatch/retention.js';

const kept = (nid: string, finishedAt: number): KeptRow => ({ row: { nid, finishedAt } as InstructionRow, version: 1n });
const NOW = KEPT_MS * 2;

describe('finished instructions are removed', () => {
  test('a day after their end', () => {
    const rows = [kept('a', NOW - KEPT_MS), kept('a', NOW - KEPT_MS + 1)];
    expect(overdue(rows, NOW)).toEqual([rows[0]]);
  });

  test('when a node has more than 200, the oldest first', () => {
    const rows = Array.from({ length: KEPT_PER_NODE + 2 }, (_, i) => kept('a', NOW - i));
    expect(overdue([...rows, kept('b', NOW - 9_999)], NOW)).toEqual(rows.slice(KEPT_PER_NODE));
  });

  test('when there are more than 20,000', () => {
    const rows = Array.from({ length: KEPT_IN_ALL + 3 }, (_, i) => kept(`n${i % 1_000}`, NOW - i));
    expect(overdue(rows, NOW)).toEqual(rows.slice(KEPT_IN_ALL));
  });
});
