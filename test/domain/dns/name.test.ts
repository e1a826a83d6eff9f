import { describe, expect, test } from 'vitest';
import { formatName, nameKey, parseName, reverseOf } from '../../../src/domain/dns/name.js';

describe('names as people write them', () => {
  test.each([
    ['hello.default.holdfast', ['hello', 'default', 'holdfast']],
    ['hello.default.holdfast.', ['hello', 'default', 'holdfast']],
    ['_http._tcp.a', ['_http', '_tcp', 'a']],
    ['.', []],
    ['', undefined],
    ['a..b', undefined],
    ['a b', undefined],
    ['a\\046b', undefined],
    ['é.b', undefined],
    ['x'.repeat(64), undefined],
    [`${'x'.repeat(63)}.`.repeat(4), undefined],
  ])('%s', (text, name) => {
    expect(parseName(text)).toEqual(name);
  });

  test('what would be read as something else is escaped', () => {
    expect(formatName(['a.b', 'c\\d', '\u0000\u00ff', 'E'])).toBe('a\\.b.c\\\\d.\\000\\255.E.');
    expect(formatName([])).toBe('.');
  });

  test('case is of ASCII letters alone', () => {
    expect(nameKey(['HeLLo', 'Ä'])).toBe(nameKey(['hello', 'Ä']));
    expect(nameKey(['\u00c4'])).not.toBe(nameKey(['\u00e4']));
  });

  test('reverse', () => {
    expect(formatName(reverseOf('10.192.0.2'))).toBe('2.0.192.10.in-addr.arpa.');
  });
});
