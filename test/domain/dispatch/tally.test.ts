import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type InstructionRow, type InstructionState, instructionStates, isFinished } from '../../../src/domain/dispatch/model.js';
import { InstructionTally } from '../../../src/domain/dispatch/tally.js';
import type { Tag } from '../../../src/domain/instruction/model.js';
import { nid, registrationId } from '../../../src/domain/link/model.js';

const body = { pieces: 0, bytes: 0, digest: '' };

function row(type: string, state: InstructionState, replyType?: string): InstructionRow {
  return {
    ...{ nid: nid('n1'), registration: registrationId('r1'), tag: 't' as Tag, type, request: body, state },
    ...{ issuedAt: 0, expiresAt: 1, answerMs: 1, by: 'local:0' },
    reply: replyType === undefined ? undefined : { type: replyType, body },
  };
}

const script = (state: InstructionState, replyType?: string) => row('RUN_REMOTE_SCRIPT', state, replyType);

describe('how many instructions are where', () => {
  test('one is counted where it is now, and once when it has ended', () => {
    const tally = new InstructionTally();
    const way = [undefined, script('pending'), script('claimed'), script('delivered'), script('done', 'X_RESPONSE'), undefined];
    const open = way.slice(1).map((next, index) => {
      tally.note(way[index], next);
      return tally.open().flatMap(({ state, count }) => (count === 0 ? [] : [state]));
    });
    expect(open).toEqual([['pending'], ['claimed'], ['delivered'], [], []]);
    expect(tally.ended()).toEqual([{ type: 'RUN_REMOTE_SCRIPT', ending: 'answered', count: 1 }]);
  });

  test.each([
    [script('done', 'RUN_REMOTE_SCRIPT_RESPONSE'), 'answered'],
    [script('done', 'ERROR'), 'error'],
    [script('done', 'VIP_ASSIGN_ERROR'), 'error'],
    [script('unknown'), 'unknown'],
    [script('expired'), 'expired'],
    [script('cancelled'), 'cancelled'],
  ])('how it ended: %#', (ended, ending) => {
    const tally = new InstructionTally();
    tally.note(script('delivered'), ended);
    expect(tally.ended()).toMatchObject([{ ending, count: 1 }]);
  });

  test('what had ended before it was seen is not counted, however often it is told', () => {
    const tally = new InstructionTally();
    tally.note(undefined, script('done', 'ERROR'));
    tally.note(script('done', 'ERROR'), script('done', 'ERROR'));
    tally.note(script('done', 'ERROR'), undefined);
    expect([tally.open(), tally.ended()]).toEqual([[], []]);
  });

  test('types that nobody knows are one', () => {
    const tally = new InstructionTally();
    for (let i = 0; i < 1_000; i += 1) tally.note(undefined, row(`TYPE_${i}`, 'pending'));
    tally.note(undefined, row('UPDATE_AGENT', 'pending'));
    expect(tally.open()).toEqual([
      { type: 'other', state: 'pending', count: 1_000 },
      { type: 'UPDATE_AGENT', state: 'pending', count: 1 },
    ]);
  });

  test('law: as many are open as are open, whatever happened', () => {
    const step = fc.tuple(fc.nat(5), fc.option(fc.constantFrom(...instructionStates), { nil: undefined }));
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const tally = new InstructionTally();
        const rows = new Map<number, InstructionRow>();
        for (const [key, state] of steps) {
          const next = state === undefined ? undefined : script(state);
          tally.note(rows.get(key), next);
          if (next === undefined) rows.delete(key);
          else rows.set(key, next);
        }
        const open = [...rows.values()].filter((each) => !isFinished(each)).length;
        expect(tally.open().reduce((sum, { count }) => sum + count, 0)).toBe(open);
      }),
    );
  });
});
