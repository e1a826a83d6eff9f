import { describe, expect, test } from 'vitest';
import { RegistrationLimits } from '../../../src/domain/certificate/registration-limits.js';

const fail = (limits: RegistrationLimits, address: string, at: number) => {
  const verdict = limits.admit(address, at);
  if (verdict === 'ok') limits.failed(address, at);
  return verdict;
};

describe('F7: ten failed tries a minute an address', () => {
  test('the eleventh is held back until the first is a minute old', () => {
    const limits = new RegistrationLimits();
    for (let i = 0; i < 10; i += 1) expect(fail(limits, '192.0.2.1', i * 1_000)).toBe('ok');
    expect(limits.admit('192.0.2.1', 10_000)).toBe('address');
    expect(limits.admit('192.0.2.1', 59_999)).toBe('address');
    expect(limits.admit('192.0.2.1', 60_000)).toBe('ok');
  });

  test('others are not held back, nor who succeeds', () => {
    const limits = new RegistrationLimits();
    for (let i = 0; i < 10; i += 1) fail(limits, '192.0.2.1', 0);
    expect(limits.admit('192.0.2.2', 0)).toBe('ok');
    const good = new RegistrationLimits();
    for (let i = 0; i < 40; i += 1) expect(good.admit('192.0.2.1', i * 100)).toBe('ok');
  });

  test('tries that are held back do not prolong it', () => {
    const limits = new RegistrationLimits();
    for (let i = 0; i < 10; i += 1) fail(limits, '192.0.2.1', 0);
    for (let at = 1_000; at < 60_000; at += 1_000) expect(fail(limits, '192.0.2.1', at)).toBe('address');
    expect(fail(limits, '192.0.2.1', 60_000)).toBe('ok');
  });

  test.each([
    ['of one IPv6 network', '2001:db8::1', '2001:db8::ffff:1', 'address'],
    ['of two IPv6 networks', '2001:db8::1', '2001:db8:0:1::1', 'ok'],
    ['one IPv4, mapped or not', '192.0.2.1', '::ffff:192.0.2.1', 'address'],
    ['two IPv4, both mapped', '::ffff:192.0.2.1', '::ffff:192.0.2.2', 'ok'],
  ])('addresses %s', (_, first, second, verdict) => {
    const limits = new RegistrationLimits();
    for (let i = 0; i < 10; i += 1) fail(limits, first, 0);
    expect(limits.admit(second, 0)).toBe(verdict);
  });
});

describe('F7: fifty tries a second in all', () => {
  test('whoever they come from', () => {
    const limits = new RegistrationLimits();
    for (let i = 0; i < 50; i += 1) expect(limits.admit(`192.0.2.${i}`, 0)).toBe('ok');
    expect(limits.admit('198.51.100.1', 0)).toBe('all');
    expect(limits.admit('198.51.100.1', 19)).toBe('all');
    expect(limits.admit('198.51.100.1', 20)).toBe('ok');
    expect(limits.admit('198.51.100.2', 20)).toBe('all');
  });

  test('a pause gives back a second of them, not more', () => {
    const limits = new RegistrationLimits();
    for (let i = 0; i < 50; i += 1) limits.admit('192.0.2.1', 0);
    const admitted = Array.from({ length: 200 }, (_, i) => limits.admit(`192.0.2.${i}`, 3_600_000));
    expect(admitted.filter((verdict) => verdict === 'ok').length).toBe(50);
  });
});

test('ten minutes of guessing from 60,000 addresses: a minute of it is remembered', () => {
  const limits = new RegistrationLimits();
  let greatest = 0;
  for (let at = 0; at < 600_000; at += 10) {
    fail(limits, `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`, at);
    greatest = Math.max(greatest, limits.size);
  }
  expect(greatest).toBeLessThanOrEqual(3_050);
});
