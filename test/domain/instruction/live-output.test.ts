import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  newerThan,
  OUTPUT_PIECE_BYTES,
  OutputBudget,
  type OutputPiece,
  outputMessage,
  readOutput,
} from '../../../src/domain/instruction/live-output.js';
import { tagOf } from '../../support/fleet-rig.js';

const piece: OutputPiece = { of: tagOf('t1'), stream: 'stderr', seq: 7, bytes: Uint8Array.of(104, 105) };
const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');

describe('A17: INSTRUCTION_OUTPUT', () => {
  test('has these keys, under a tag of its own', () => {
    const { type, tag, jsonB64 } = outputMessage(piece, 'own');
    expect([type, tag]).toEqual(['INSTRUCTION_OUTPUT', 'own']);
    const said = JSON.parse(Buffer.from(jsonB64, 'base64').toString());
    expect(said).toEqual({ of: 't1', stream: 'stderr', seq: 7, dataB64: 'aGk=' });
  });

  test('law: is read back as it was written', () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: OUTPUT_PIECE_BYTES });
    const seq = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(bytes, seq, fc.constantFrom('stdout' as const, 'stderr' as const), (said, at, stream) => {
        const whole = { of: tagOf('t1'), stream, seq: at, bytes: said };
        expect(readOutput(outputMessage(whole, 'own').jsonB64)).toEqual(whole);
      }),
    );
  });

  const good = { of: 't1', stream: 'stdout', seq: 0, dataB64: 'aGk=' };
  test.each([
    ['no base64', '%%%'],
    ['no JSON', Buffer.from('{').toString('base64')],
    ['no object', b64([good])],
    ['nothing', b64(null)],
    ['no tag', b64({ ...good, of: '' })],
    ['a tag of 129 characters', b64({ ...good, of: 'x'.repeat(129) })],
    ['another stream', b64({ ...good, stream: 'stdin' })],
    ['a number below 0', b64({ ...good, seq: -1 })],
    ['a number that is no whole one', b64({ ...good, seq: 0.5 })],
    ['a number beyond what is exact', b64({ ...good, seq: 2 ** 53 })],
    ['a number as text', b64({ ...good, seq: '0' })],
    ['no bytes', b64({ ...good, dataB64: '' })],
    ['bytes that are no base64', b64({ ...good, dataB64: 'a' })],
    ['more bytes than a piece has', b64({ ...good, dataB64: Buffer.alloc(OUTPUT_PIECE_BYTES + 1).toString('base64') })],
    ['100 MB', 'A'.repeat(1_000_000)],
  ])('is not: %s', (_, text) => expect(readOutput(text)).toBeUndefined());

  test.each([
    ['all of it is new', 0, 'hi', 7],
    ['it follows', 7, 'hi', 7],
    ['half of it is known', 8, 'i', 8],
    ['all of it is known', 9, undefined, undefined],
    ['it is old', 100, undefined, undefined],
  ])('what was seen is not told twice: %s', (_, seen, text, seq) => {
    const left = newerThan(piece, seen);
    expect(left && Buffer.from(left.bytes).toString()).toBe(text);
    expect(left?.seq).toBe(seq);
  });
});

describe('A17: how much live output is sent', () => {
  test('law: never more than 256 KiB in any second, however it is asked for', () => {
    const asks = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 3_000 }), most: fc.integer({ min: 0, max: 400_000 }) }));
    fc.assert(
      fc.property(asks, (calls) => {
        const budget = new OutputBudget(0);
        const sent: { readonly at: number; readonly bytes: number }[] = [];
        let now = 0;
        for (const { afterMs, most } of calls) {
          now += afterMs;
          const bytes = Math.min(most, budget.left(now));
          budget.spend(bytes);
          sent.push({ at: now, bytes });
        }
        for (const { at } of sent) {
          const inSecond = sent
            .filter((each) => each.at >= at && each.at < at + 1_000)
            .reduce((sum, { bytes }) => sum + bytes, 0);
          expect(inSecond).toBeLessThanOrEqual(256 * 1024);
        }
      }),
    );
  });

  test('a pause saves up 64 KiB and no more; what was spent too much is waited for', () => {
    const budget = new OutputBudget(0);
    expect(budget.left(60_000)).toBe(64 * 1024);
    budget.spend(160 * 1024);
    expect([budget.left(60_250), budget.left(60_750)]).toEqual([0, 48 * 1024]);
  });
});
