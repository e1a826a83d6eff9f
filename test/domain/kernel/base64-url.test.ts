import fc from 'fast-check';
import { expect, test } from 'vitest';
import { base64Url, hex } from '../../../src/domain/kernel/base64-url.js';

test('spells bytes as others do', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      expect(base64Url(bytes)).toBe(Buffer.from(bytes).toString('base64url'));
      expect(hex(bytes)).toBe(Buffer.from(bytes).toString('hex'));
    }),
  );
});
