import { expect, test } from 'vitest';
import { outboxSequence, ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';

test('a sequence number is zero or above', () => {
  expect(outboxSequence(0n)).toBe(ZERO_SEQUENCE);
  expect(outboxSequence(2n ** 64n)).toBe(18_446_744_073_709_551_616n);
  expect(() => outboxSequence(-1n)).toThrow('not a sequence number: -1');
});
