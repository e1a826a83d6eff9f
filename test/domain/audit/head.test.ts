import { expect, test } from 'vitest';
import { formatHead, judgeHead, parseHead } from '../../../src/domain/audit/head.js';
import type { AuditHead } from '../../../src/domain/audit/model.js';

const head = (sequence: bigint, digest: string): AuditHead => ({ sequence, digest });

test.each<[string, AuditHead, AuditHead | undefined, AuditHead, string]>([
  ['a later one', head(5n, 'a'), head(6n, 'b'), head(6n, 'b'), 'follows'],
  ['the same', head(5n, 'a'), head(5n, 'a'), head(5n, 'a'), 'follows'],
  ['an earlier one', head(5n, 'a'), head(4n, 'z'), head(5n, 'a'), 'lower'],
  ['none any more', head(5n, 'a'), undefined, head(5n, 'a'), 'lower'],
  ['another of the same number', head(5n, 'a'), head(5n, 'b'), head(5n, 'a'), 'different'],
])('H2: %s', (_, kept, reported, then, verdict) => {
  expect(judgeHead(kept, reported)).toEqual({ kept: then, verdict });
});

test('H2: a head that is handed on as text is the same head', () => {
  const known = head(12n, 'ab'.repeat(32));
  expect(parseHead(formatHead(known))).toEqual(known);
});

test.each(['', '12', '12:', `0:${'a'.repeat(64)}`, `-1:${'a'.repeat(64)}`, `12:${'A'.repeat(64)}`, `12:${'a'.repeat(63)}`])(
  'no head: %j',
  (text) => {
    expect(parseHead(text)).toBeUndefined();
  },
);
