import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatToken,
  judgeToken,
  parseToken,
  TOKEN_BYTES,
  type TokenRecord,
  type TokenTry,
  type TokenUse,
  tokenOf,
  tokenState,
} from '../../../src/domain/certificate/token.js';
import { MINUTE, NOW, nodeIdentity } from './support.js';

const use: TokenUse = {
  at: NOW,
  machineId: 'm1',
  nid: nodeIdentity.nid,
  registration: nodeIdentity.registration,
  serial: 'aa',
  fingerprint: 'f1',
};
const record = (more: Partial<TokenRecord> = {}): TokenRecord => ({
  id: '0123456789ab',
  digest: 'd',
  aid: nodeIdentity.aid,
  purpose: { kind: 'join' },
  created: NOW - MINUTE,
  expires: NOW + MINUTE,
  ...more,
});
const attempt = (more: Partial<TokenTry> = {}): TokenTry => ({ aid: 'acme', machineId: 'm1', fingerprint: 'f1', ...more });

describe('F7: a token', () => {
  test('is an id, a dot and 32 random bytes', () => {
    const token = formatToken(tokenOf(Uint8Array.from({ length: TOKEN_BYTES }, (_, i) => i)));
    expect(token).toBe('000102030405.BgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCU');
    expect(() => tokenOf(new Uint8Array(32))).toThrow(RangeError);
  });

  test('is read as it was written, also with white space around it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: TOKEN_BYTES, maxLength: TOKEN_BYTES }), (bytes) => {
        const parts = tokenOf(bytes);
        expect(parseToken(` ${formatToken(parts)}\n`)).toEqual(parts);
      }),
    );
  });

  test.each([
    '',
    '.',
    'abc',
    '0123456789ab.',
    `0123456789ab.${'a'.repeat(42)}`,
    `0123456789ab.${'a'.repeat(44)}`,
    `0123456789AB.${'a'.repeat(43)}`,
    `0123456789ab.${'a'.repeat(42)}!`,
  ])('%j is none', (text) => {
    expect(parseToken(text)).toBeUndefined();
  });
});

describe('F7: who may use it', () => {
  test('fresh', () => {
    expect(judgeToken(record(), attempt(), NOW)).toEqual({ verdict: 'fresh' });
    expect(judgeToken(record(), attempt({ fingerprint: undefined }), NOW)).toEqual({ verdict: 'fresh' });
  });

  test('of another account', () => {
    expect(judgeToken(record(), attempt({ aid: 'other' }), NOW)).toEqual({ verdict: 'wrong_account' });
  });

  test('expired, at the millisecond', () => {
    expect(judgeToken(record(), attempt(), NOW + MINUTE - 1)).toEqual({ verdict: 'fresh' });
    expect(judgeToken(record(), attempt(), NOW + MINUTE)).toEqual({
      verdict: 'refused',
      reason: 'it has expired',
      foreign: false,
    });
  });

  const used = record({ used: use });

  test('again by the same machine with the same key within ten minutes, also when it has expired since', () => {
    expect(judgeToken(used, attempt(), NOW)).toEqual({ verdict: 'again', use });
    expect(judgeToken(used, attempt(), NOW + 10 * MINUTE - 1)).toEqual({ verdict: 'again', use });
  });

  test('again by the same machine that wants a key made', () => {
    expect(judgeToken(used, attempt({ fingerprint: undefined }), NOW + MINUTE)).toEqual({ verdict: 'reissue', use });
  });

  test.each<{ name: string; try: TokenTry; at: number; reason: string; foreign: boolean }>([
    {
      name: 'another machine, which is an event',
      try: attempt({ machineId: 'm2' }),
      at: NOW,
      reason: 'it was used by another machine, as n1',
      foreign: true,
    },
    {
      name: 'the same machine ten minutes later',
      try: attempt(),
      at: NOW + 10 * MINUTE,
      reason: 'this machine has used it, as n1, too long ago',
      foreign: false,
    },
    {
      name: 'the same machine after the clock was set back',
      try: attempt(),
      at: NOW - 1,
      reason: 'this machine has used it, as n1, too long ago',
      foreign: false,
    },
    {
      name: 'the same machine with another key',
      try: attempt({ fingerprint: 'f2' }),
      at: NOW,
      reason: 'this machine has used it, as n1, with another key',
      foreign: false,
    },
  ])('not again: $name', ({ try: again, at, reason, foreign }) => {
    expect(judgeToken(used, again, at)).toEqual({ verdict: 'refused', reason, foreign });
  });

  test('its state for those who look at it', () => {
    expect(tokenState(record(), NOW)).toBe('open');
    expect(tokenState(record(), NOW + MINUTE)).toBe('expired');
    expect(tokenState(used, NOW + MINUTE)).toBe('used');
  });
});
