import { expect, test } from 'vitest';
import type { IpAddress } from '../../../src/domain/kernel/network.js';
import { interfaceOf } from '../../../src/domain/vip/placement.js';
import { vipPayload } from '../../../src/domain/vip/schema.js';

const placed = [
  ['lo', '127.0.0.1', 8],
  ['eth0', '10.9.0.1', 16],
  ['eth1', '10.9.8.1', 24],
  ['wg0', '10.78.0.1', 32],
  ['eth0', 'fd09::1', 64],
  ['eth2', '2001:db8::1', 0],
].map(([on, address, prefixLength]) => {
  return {
    interface: String(on),
    address: String(address) as IpAddress,
    prefixLength: Number(prefixLength),
    validSeconds: undefined,
  };
});

test.each([
  ['10.9.1.100', 'eth0'],
  ['10.9.8.100', 'eth1'],
  ['10.78.0.2', undefined],
  ['192.0.2.1', undefined],
  ['fd09::64', 'eth0'],
  ['fd0a::64', undefined],
])('%s belongs on %s', (address, on) => {
  expect(interfaceOf(address as IpAddress, placed)).toBe(on);
});

test('where it stands already says nothing', () => {
  const own = { interface: 'eth9', address: '10.9.8.100' as IpAddress, prefixLength: 24, validSeconds: 5 };
  expect(interfaceOf('10.9.8.100' as IpAddress, [...placed, own])).toBe('eth1');
});

test.each([
  [{ generation: 3 }, 3n],
  [{ generation: -3 }, -3n],
  [{ generation: 2n ** 63n - 1n }, 2n ** 63n - 1n],
  [{ generation: 2n ** 63n }, undefined],
  [{ generation: 1.5 }, undefined],
  [{ generation: '3' }, undefined],
  [{}, undefined],
  [[], undefined],
])('%s is a generation of %s', (payload, generation) => {
  expect(vipPayload.safeParse(payload).data?.generation).toBe(generation);
});
