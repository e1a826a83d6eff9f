import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeBase64, decodedLength, encodeBase64 } from '../../../src/domain/link/base64.js';
import { payloadOf, readPayload } from '../../../src/domain/link/payload.js';
import { decodeUtf8, encodeUtf8 } from '../../../src/domain/link/utf8.js';

const bytes = fc.uint8Array({ maxLength: 200 });

describe('base64', () => {
  test('law: says what Node says, and reads it back', () => {
    fc.assert(
      fc.property(bytes, (value) => {
        const text = encodeBase64(value);
        expect(text).toBe(Buffer.from(value).toString('base64'));
        expect(decodeBase64(text)).toEqual(value);
        expect(decodedLength(text)).toBe(value.length);
      }),
    );
  });

  test('law: what it takes is the one spelling of its bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'AQgw/+=\n '), maxLength: 12 }), (text) => {
        const decoded = decodeBase64(text);
        if (decoded !== undefined) expect(encodeBase64(decoded)).toBe(text);
      }),
    );
  });

  test.each([
    'A',
    'AA',
    'AAA',
    'AA=',
    'A===',
    '====',
    '=AAA',
    'AA=A',
    'AB==',
    'AAB=',
    'AA-_',
    'AAAA\n',
    ' AAAA',
    'AAA\u0141',
    '\u0000AAA',
  ])('C5: %j is none', (text) => expect(decodeBase64(text)).toBeUndefined());
});

describe('UTF-8', () => {
  test('law: says what Node says, and reads it back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 50 }), (text) => {
        const encoded = encodeUtf8(text);
        expect(Buffer.from(encoded)).toEqual(Buffer.from(text));
        expect(decodeUtf8(encoded)).toBe(text);
      }),
    );
  });

  test('law: takes exactly what a strict decoder takes', () => {
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const nasty = fc.constantFrom(
      0x00,
      0x7f,
      0x80,
      0xbf,
      0xc0,
      0xc1,
      0xc2,
      0xdf,
      0xe0,
      0xed,
      0xef,
      0x9f,
      0xa0,
      0xf0,
      0xf4,
      0x8f,
      0x90,
      0xf5,
      0xff,
    );
    fc.assert(
      fc.property(fc.array(nasty, { maxLength: 8 }), (value) => {
        const input = Uint8Array.from(value);
        let expected: string | undefined;
        try {
          expected = strict.decode(input);
        } catch {
          expected = undefined;
        }
        expect(decodeUtf8(input)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  test('lone surrogates become U+FFFD; long texts pass', () => {
    expect(decodeUtf8(encodeUtf8('a\ud800b'))).toBe('a\ufffdb');
    const long = 'ä€😀'.repeat(20_000);
    expect(decodeUtf8(encodeUtf8(long))).toBe(long);
  });
});

describe('a payload', () => {
  test('law: reads back what was said', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(readPayload(payloadOf(value), 1e6)).toEqual({ ok: true, value: JSON.parse(JSON.stringify(value)) });
      }),
    );
  });

  const b64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
  test.each([
    { name: 'empty', text: '', problem: 'no JSON' },
    { name: 'plain text', text: 'exit status 1', problem: 'no base64' },
    { name: 'no UTF-8', text: b64(Buffer.from([0x22, 0xff, 0x22])), problem: 'no UTF-8' },
    { name: 'no JSON', text: b64('{"a":'), problem: 'no JSON' },
    { name: 'too long by one', text: b64('"234567890123"'), problem: 'larger than 13 bytes' },
  ])('$name', ({ text, problem }) => expect(readPayload(text, 13)).toEqual({ ok: false, problem }));

  test('of the limit exactly', () => expect(readPayload(b64('"34567890123"'), 13)).toEqual({ ok: true, value: '34567890123' }));
});
