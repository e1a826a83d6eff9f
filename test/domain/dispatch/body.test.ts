import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commitGroups, PIECE_UNITS, pieces } from '../../../src/domain/dispatch/body.js';
import { INLINE_BYTES, instructionKey, replyPrefix } from '../../../src/domain/dispatch/model.js';
import { n1, tagOf } from '../../support/fleet-rig.js';

describe('bodies', () => {
  test('law: pieces are well-formed, small, and the text again', () => {
    const text = fc
      .tuple(fc.constantFrom('a', 'ü', '\u{1f4be}'), fc.integer({ min: 0, max: 3 * PIECE_UNITS }), fc.constantFrom('', 'x', 'xy'))
      .map(([letter, count, before]) => `${before}${letter.repeat(count)}`);
    fc.assert(
      fc.property(text, (whole) => {
        const parts = pieces(whole);
        expect(parts.join('') === whole).toBe(true);
        expect(parts.every((part) => part.isWellFormed() && part.length <= PIECE_UNITS)).toBe(true);
        expect(parts.length === 1 || parts.every((part) => part !== '')).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('law: groups are all pieces in order, none larger than a commit takes', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 3 * PIECE_UNITS }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(sizes, (bytes) => {
        const all = bytes.map((_, i) => String(i));
        const groups = commitGroups(all, (text) => bytes[Number(text)] ?? 0);
        expect(groups.flat()).toEqual(all);
        for (const group of groups) {
          const sum = group.reduce((total, text) => total + (bytes[Number(text)] ?? 0), 0);
          expect(sum <= INLINE_BYTES || group.length === 1).toBe(true);
        }
      }),
    );
  });

  test('a text up to 512 KiB is one group', () => {
    const text = 'x'.repeat(INLINE_BYTES);
    expect(commitGroups(pieces(text), (piece) => piece.length)).toHaveLength(1);
    expect(commitGroups(pieces(`${text}x`), (piece) => piece.length)).toHaveLength(2);
  });
});

test('keys have no segment more whatever the tag is, and no two tags share one', () => {
  const tags = ['a', 'a/b', 'a%2Fb', '../x', ' '].map(tagOf);
  const keys = tags.map((tag) => instructionKey(n1, tag));
  expect(keys).toEqual(['inst/n1/a', 'inst/n1/a%2Fb', 'inst/n1/a%252Fb', 'inst/n1/..%2Fx', 'inst/n1/ ']);
  expect(replyPrefix(n1, tagOf('a/b'))).toBe('inst-body/n1/a%2Fb/r/');
});
