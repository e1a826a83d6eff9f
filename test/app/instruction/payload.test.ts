import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeAnswer, replyBytes } from '../../../src/app/instruction/encode.js';
import { decodePayload } from '../../../src/app/instruction/payload.js';
import { NO_CONTENT } from '../../../src/domain/instruction/model.js';
import { parseExact } from '../../../src/domain/kernel/exact-json.js';
import { base64 } from '../../support/instruction-rig.js';

const limits = { type: 'X', mayBeEmpty: false, maxPayloadBytes: 1_024 };

describe('payloads', () => {
  test('law: what was encoded is decoded', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
        const encoded = base64(value);
        fc.pre(encoded.length <= 1_024);
        expect(decodePayload(encoded, limits)).toEqual({ json: parseExact(JSON.stringify(value)) });
      }),
    );
  });

  test('law: nothing but padded base64 is taken, and nothing throws', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const decoded = decodePayload(text, limits);
        if ('json' in decoded) expect(Buffer.from(text, 'base64').toString('base64')).toBe(text);
      }),
    );
  });

  test('an empty one where there may be one', () => {
    expect(decodePayload('', { ...limits, mayBeEmpty: true })).toEqual({ json: {} });
    expect(decodePayload('', limits)).toEqual({ problem: 'the payload is empty' });
  });
});

test.each<[string, unknown]>([
  ['{"generation":9007199254740993}', { generation: 9007199254740993n }],
  ['{"generation":-9223372036854775808}', { generation: -9223372036854775808n }],
  ['[9007199254740991,1.5,1e300]', [9007199254740991, 1.5, 1e300]],
  ['{"a":{"b":[12345678901234567890]}}', { a: { b: [12345678901234567890n] } }],
])('whole numbers stay exact beyond 2^53: %s', (text, value) => {
  expect(parseExact(text)).toEqual(value);
});

describe('answers', () => {
  test.each([
    [NO_CONTENT, { type: 'NO_CONTENT', jsonB64: 'e30=' }, 14],
    [{ kind: 'error' as const, text: 'no\ud800' }, { type: 'ERROR', jsonB64: 'no\ufffd' }, 8],
    [{ kind: 'none' as const }, 'none', 0],
    [{ kind: 'json' as const, type: 'A', value: { b: 'ü' } }, { type: 'A', jsonB64: base64({ b: 'ü' }) }, 17],
  ])('%j', (answer, expected, bytes) => {
    expect(encodeAnswer(answer)).toEqual(expected);
    expect(replyBytes(encodeAnswer(answer))).toBe(bytes);
  });

  test('A15: one that cannot be sent becomes an ERROR that names the size', () => {
    const reply = encodeAnswer({ kind: 'json', type: 'BIG', value: { x: 'x'.repeat(12 * 1024 * 1024) } });
    expect(reply).toEqual({
      type: 'ERROR',
      jsonB64: expect.stringMatching(/^RESULT_TOO_LARGE: .* type BIG has 167\d+ bytes, 12578816 can be sent$/),
    });
  });
});
