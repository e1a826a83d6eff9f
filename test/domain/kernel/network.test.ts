import { isIP, SocketAddress } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressPort,
  containsRange,
  formatAddressPort,
  formatHostPort,
  formatIpv4Range,
  hostPort,
  ipAddress,
  ipv4Range,
  ipv4ToNumber,
  ipv6Groups,
  isIpv6,
  isLoopback,
  numberToIpv4,
  type PortNumber,
  portNumber,
} from '../../../src/domain/kernel/network.js';

describe('ipAddress', () => {
  test.each<{ name: string; text: string; canonical: string }>([
    { name: 'IPv4', text: '10.192.0.2', canonical: '10.192.0.2' },
    { name: 'the highest IPv4', text: '255.255.255.255', canonical: '255.255.255.255' },
    { name: 'unspecified', text: '0:0:0:0:0:0:0:0', canonical: '::' },
    { name: 'loopback', text: '0000::0001', canonical: '::1' },
    { name: 'RFC 5952 4.1: leading zeros', text: '2001:0db8::0001', canonical: '2001:db8::1' },
    { name: 'RFC 5952 4.2.1: as short as possible', text: '2001:db8:0:0:0:0:2:1', canonical: '2001:db8::2:1' },
    { name: 'RFC 5952 4.2.2: one zero group stays', text: '2001:db8:0:1:1:1:1:1', canonical: '2001:db8:0:1:1:1:1:1' },
    { name: 'RFC 5952 4.2.2: one zero group that was shortened', text: '2001:db8::1:1:1:1:1', canonical: '2001:db8:0:1:1:1:1:1' },
    { name: 'RFC 5952 4.2.3: the longest run', text: '2001:0:0:1:0:0:0:1', canonical: '2001:0:0:1::1' },
    { name: 'RFC 5952 4.2.3: the first among equal runs', text: '2001:db8:0:0:1:0:0:1', canonical: '2001:db8::1:0:0:1' },
    { name: 'RFC 5952 4.3: lower case', text: '2001:DB8::ABCD', canonical: '2001:db8::abcd' },
    { name: 'RFC 5952 5: mapped IPv4', text: '::FFFF:c000:0201', canonical: '::ffff:192.0.2.1' },
    { name: 'mapped IPv4 as it is', text: '::ffff:192.0.2.1', canonical: '::ffff:192.0.2.1' },
    { name: 'a dotted tail that is not mapped', text: '64:ff9b::192.0.2.33', canonical: '64:ff9b::c000:221' },
    { name: 'a dotted tail without a gap', text: '1:2:3:4:5:6:1.2.3.4', canonical: '1:2:3:4:5:6:102:304' },
    { name: 'a gap at the start', text: '::2:3:4:5:6:7:8', canonical: '0:2:3:4:5:6:7:8' },
    { name: 'a gap at the end', text: '1:2:3:4:5:6:0::', canonical: '1:2:3:4:5:6::' },
  ])('$name: $text', ({ text, canonical }) => {
    expect(ipAddress(text)).toBe(canonical);
    expect(isIP(text)).not.toBe(0);
    expect(ipAddress(canonical)).toBe(canonical);
  });

  test.each([
    '',
    ' ',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '01.2.3.4',
    '1.2.3.04',
    '0x7f.0.0.1',
    '1.2.3.4 ',
    '1.2.3.4\n',
    '1..2.3',
    '2130706433',
    '١.٢.٣.٤',
    ':',
    ':::',
    ':1',
    '1:',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8:',
    ':1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7::8',
    '1::2::3',
    '1::2:',
    '1:2::3:',
    ':1::2',
    '1:::2',
    ':::1',
    '1:::',
    ':::1.2.3.4',
    '12345::',
    'g::',
    '::1%eth0',
    '[::1]',
    '::1/128',
    '::1.2.3',
    '::1.2.3.256',
    '::01.2.3.4',
    '::1.2.3.4:5',
    '1.2.3.4::',
    ':1.2.3.4',
    '1:2:3:4:5:6:7:1.2.3.4',
    '1:2:3:4:5:6::1.2.3.4',
    '::-1',
    '::+1',
    ':: 1',
  ])('%j is none', (text) => {
    expect(ipAddress(text)).toBeUndefined();
  });

  test('law: it accepts what node:net accepts, a zone apart', () => {
    const piece = fc.constantFrom(':', '::', '.', '0', '1', 'ffff', '00', '256', '1.2.3.4', 'abcde', 'F', '12', '%', ' ');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 16 }), (pieces) => {
        const text = pieces.join('');
        fc.pre(!text.includes('%'));
        expect(ipAddress(text) !== undefined).toBe(isIP(text) !== 0);
      }),
      { numRuns: 5_000 },
    );
  });

  test('law: it accepts every spelling and the canonical one is stable and the same address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const address = ipAddress(text);
        if (address === undefined) throw new Error(`refused: ${text}`);
        expect(ipAddress(address)).toBe(address);
        if (isIpv6(address)) {
          expect(ipv6Groups(address)).toEqual(ipv6Groups(text));
          expect(new SocketAddress({ address, family: 'ipv6' }).address).toBe(
            new SocketAddress({ address: text, family: 'ipv6' }).address,
          );
        }
      }),
    );
  });

  test('law: eight groups are the address that they are read from', () => {
    const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const address = ipAddress(groups.map((each) => each.toString(16)).join(':'));
        expect(ipv6Groups(address ?? '')).toEqual(groups);
      }),
    );
  });
});

describe('IPv4 as a number', () => {
  test.each([
    ['0.0.0.0', 0],
    ['10.192.0.2', 0x0ac0_0002],
    ['255.255.255.255', 0xffff_ffff],
  ])('%s', (text, value) => {
    expect(ipv4ToNumber(text)).toBe(value);
    expect(numberToIpv4(value)).toBe(text);
  });

  test.each([-1, 0x1_0000_0000, 1.5, Number.NaN])('%s is none', (value) => {
    expect(() => numberToIpv4(value)).toThrow(RangeError);
  });
});

test('portNumber: 1 to 65535', () => {
  expect([0, 1, 65_535, 65_536, 1.5, -1, Number.NaN].map(portNumber)).toEqual([
    undefined,
    1,
    65_535,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test('formatAddressPort brackets IPv6', () => {
  const formatted = ['10.0.0.1', '::1', '::ffff:1.2.3.4'].map((text) => {
    const address = ipAddress(text);
    return address === undefined ? undefined : formatAddressPort(address, 80);
  });
  expect(formatted).toEqual(['10.0.0.1:80', '[::1]:80', '[::ffff:1.2.3.4]:80']);
});

describe('addressPort', () => {
  test.each(['10.0.0.1:80', '[::1]:65535', '[::ffff:1.2.3.4]:1'])('%s is read and written back', (text) => {
    const read = addressPort(text);
    expect(read === undefined ? undefined : formatAddressPort(read.address, read.port)).toBe(text);
  });

  test('the address becomes canonical', () => {
    expect(addressPort('[0:0::1]:80')).toEqual({ address: '::1', port: 80 });
  });

  test.each([
    '',
    ':80',
    '10.0.0.1',
    '10.0.0.1:',
    '10.0.0.1:0',
    '10.0.0.1:080',
    '10.0.0.1:65536',
    '10.0.0.1:80 ',
    '::1:80',
    '[::1]',
    '[10.0.0.1]:80',
    'host:80',
    '[[::1]]:80',
  ])('%j is none', (text) => {
    expect(addressPort(text)).toBeUndefined();
  });
});

test('isLoopback', () => {
  const texts = [
    '127.0.0.1',
    '127.255.0.9',
    '::1',
    '::ffff:127.0.0.1',
    '128.0.0.1',
    '0.0.0.0',
    '::',
    '::ffff:10.0.0.1',
    '12.7.0.1',
  ];
  const loopback = texts.filter((text) => {
    const address = ipAddress(text);
    return address !== undefined && isLoopback(address);
  });
  expect(loopback).toEqual(['127.0.0.1', '127.255.0.9', '::1', '::ffff:127.0.0.1']);
});

describe('ipv4Range', () => {
  test.each(['0.0.0.0/0', '10.192.0.0/16', '10.0.0.4/30', '10.0.0.1/32', '128.0.0.0/1'])(
    '%s is read and written back',
    (text) => {
      const range = ipv4Range(text);
      expect(range === undefined ? undefined : formatIpv4Range(range)).toBe(text);
    },
  );

  test.each([
    '',
    '/',
    '10.0.0.0',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.1/31',
    '10.1.0.0/8',
    '10.0.0/8',
    '::/0',
    '10.0.0.0/8 ',
  ])('%j is none', (text) => {
    expect(ipv4Range(text)).toBeUndefined();
  });

  test.each<{ outer: string; inner: string; contains: boolean }>([
    { outer: '10.0.0.0/8', inner: '10.0.0.0/8', contains: true },
    { outer: '10.0.0.0/8', inner: '10.255.255.255/32', contains: true },
    { outer: '10.0.0.0/8', inner: '11.0.0.0/8', contains: false },
    { outer: '10.0.0.0/8', inner: '9.0.0.0/8', contains: false },
    { outer: '10.0.0.0/8', inner: '10.0.0.0/7', contains: false },
    { outer: '0.0.0.0/0', inner: '255.255.255.255/32', contains: true },
  ])('$outer contains $inner: $contains', ({ outer, inner, contains }) => {
    const [first, second] = [ipv4Range(outer), ipv4Range(inner)];
    expect(first !== undefined && second !== undefined && containsRange(first, second)).toBe(contains);
  });
});

describe('hostPort', () => {
  const fallback = 9192 as PortNumber;

  test.each([
    ['a.example', { host: 'a.example', port: 9192 }, 'a.example:9192'],
    ['a.example:1', { host: 'a.example', port: 1 }, 'a.example:1'],
    ['Host-1', { host: 'Host-1', port: 9192 }, 'Host-1:9192'],
    ['10.0.0.1', { host: '10.0.0.1', port: 9192 }, '10.0.0.1:9192'],
    ['10.0.0.1:65535', { host: '10.0.0.1', port: 65_535 }, '10.0.0.1:65535'],
    ['fd00:0::1', { host: 'fd00::1', port: 9192 }, '[fd00::1]:9192'],
    ['[fd00::1]:2', { host: 'fd00::1', port: 2 }, '[fd00::1]:2'],
    ['[fd00::1]', { host: 'fd00::1', port: 9192 }, '[fd00::1]:9192'],
  ])('%s', (text, expected, formatted) => {
    const found = hostPort(text, fallback);
    expect(found).toEqual(expected);
    expect(found === undefined ? undefined : formatHostPort(found)).toBe(formatted);
  });

  test.each([
    '',
    ':1',
    'a:',
    'a:0',
    'a:65536',
    'a:01',
    'a b',
    'a_b',
    '-a',
    'a-',
    'a..b',
    'a.',
    '10.0.0',
    '10.0.0.256',
    '1.2.3.4.5',
    'a/b',
    '[a]:1',
    'a:1:2',
  ])('%j is none', (text) => {
    expect(hostPort(text, fallback)).toBeUndefined();
  });

  test('a name is at most 253 characters long, a label 63', () => {
    expect(hostPort('a'.repeat(63), fallback)).toBeDefined();
    expect(hostPort('a'.repeat(64), fallback)).toBeUndefined();
    expect(hostPort(Array(127).fill('a').join('.'), fallback)).toBeDefined();
    expect(hostPort(Array(128).fill('a').join('.'), fallback)).toBeUndefined();
  });
});
