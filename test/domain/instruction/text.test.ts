import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cutForJson,
  cutTwoForJson,
  errorText,
  jsonBytes,
  MAX_ERROR_BYTES,
  MAX_REPLY_B64,
  MAX_REPLY_JSON,
  MAX_TEXTS_JSON,
  utf8Bytes,
} from '../../../src/domain/instruction/text.js';

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('\0', '"', '\ud800', '\udc00', 'é', '漢', '😀', '\n') }),
);

test('laws: sizes are those of JSON and UTF-8', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(jsonBytes(text)).toBe(Buffer.byteLength(JSON.stringify(text)) - 2);
      expect(utf8Bytes(text)).toBe(Buffer.byteLength(text));
    }),
  );
});

describe('A15: what is cut', () => {
  test('a text that fits stays as it is', () => {
    expect(cutForJson('"\0', 8)).toBe('"\0');
    expect(cutForJson('', 0)).toBe('');
  });

  test.each([
    ['abcdef', 3, 0, 'abc\n[cut here: 3 bytes more]'],
    ['abc', 3, 7, 'abc\n[cut here: 7 bytes more]'],
    ['\0\0\0', 13, 1, '\0\0\n[cut here: 2 bytes more]'],
    // No half of a character.
    ['a😀b', 4, 0, 'a\n[cut here: 5 bytes more]'],
  ])('%j within %i bytes', (text, limit, dropped, expected) => {
    expect(cutForJson(text, limit, dropped)).toBe(expected);
  });

  test('laws: what stays is a beginning, fits, and the marker tells the rest', () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, limit) => {
        const cut = cutForJson(text, limit);
        if (cut === text) return;
        const [, kept = '', lost] = /^([\s\S]*)\n\[cut here: (\d+) bytes more\]$/.exec(cut) ?? [];
        expect(text.startsWith(kept)).toBe(true);
        expect(jsonBytes(kept)).toBeLessThanOrEqual(limit);
        expect(Number(lost)).toBe(Buffer.byteLength(text.slice(kept.length)));
      }),
    );
  });

  test('of two, each is sure of half and may have what the other does not need', () => {
    const stream = (text: string) => ({ text, dropped: 0 });
    const both = (a: number, b: number) =>
      cutTwoForJson(stream('a'.repeat(a)), stream('b'.repeat(b)), 100).map((text) => text.replace(/\n.*$/, '').length);
    expect(both(20, 200)).toEqual([20, 80]);
    expect(both(200, 20)).toEqual([80, 20]);
    expect(both(200, 200)).toEqual([50, 50]);
    expect(both(50, 50)).toEqual([50, 50]);
    expect(both(100, 0)).toEqual([100, 0]);
  });

  test('the arithmetic: two texts at the limit with their markers fit the reply, and that the message', () => {
    expect(MAX_TEXTS_JSON + 2 * 64 + 256).toBeLessThanOrEqual(MAX_REPLY_JSON);
    expect(Math.ceil(MAX_REPLY_JSON / 3) * 4).toBeLessThanOrEqual(MAX_REPLY_B64);
    // Type, tag of 128 characters and the field headers.
    expect(MAX_REPLY_B64 + 128 + 64 + 32).toBeLessThanOrEqual(12 * 1024 * 1024);
  });
});

describe('A15: the text of an ERROR', () => {
  test('is well-formed', () => {
    expect(errorText('a\ud800b')).toBe('a\ufffdb');
  });

  test('law: good UTF-8 of at most 64 KiB, with a marker when it was longer', () => {
    fc.assert(
      fc.property(anyText, fc.nat(3), (text, power) => {
        const long = text.repeat(10 ** power * 20);
        const result = errorText(long);
        expect(result.isWellFormed()).toBe(true);
        expect(Buffer.byteLength(result)).toBeLessThanOrEqual(MAX_ERROR_BYTES);
        if (Buffer.byteLength(long) > MAX_ERROR_BYTES) expect(result).toMatch(/\[cut here: \d+ bytes more\]$/);
        else expect(result).toBe(long.toWellFormed());
      }),
      { numRuns: 30 },
    );
  });
});
