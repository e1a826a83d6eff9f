import { describe, expect, test } from 'vitest';
import type { IpAddress, Ipv4Range } from '../../../src/domain/kernel/network.js';
import { aid, type Nid, nid } from '../../../src/domain/link/model.js';
import {
  acceptSelf,
  decodeOverlayRecord,
  encodeOverlayRecord,
  freeAddress,
  nodeOfKey,
  type OverlayRecord,
  overlayAddressKey,
  overlayNodeKey,
  overlaySetOf,
  peersPayloadOf,
  reachableEndpoint,
} from '../../../src/domain/overlay/fleet.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';
import { ranges } from '../../support/overlay-peers.js';

const range: Ipv4Range = { network: '10.78.0.0' as IpAddress, prefixLength: 29 };

test('the lowest free address is given, of all but the first and the last of the network', () => {
  const used = new Set<string>();
  const given: (string | undefined)[] = [];
  for (let times = 0; times < 7; times++) {
    const address = freeAddress(range, used);
    given.push(address);
    if (address !== undefined) used.add(address);
  }
  expect(given).toEqual([...[1, 2, 3, 4, 5, 6].map((last) => `10.78.0.${last}`), undefined]);
  used.delete('10.78.0.3');
  expect(freeAddress(range, used)).toBe('10.78.0.3');
});

describe('who can be reached where', () => {
  test.each([
    ['the address that it calls from', '10.0.0.5', '10.0.0.5:4711', '10.0.0.5'],
    ['a private one that it does not call from: it is behind NAT', '192.168.1.5', '198.51.100.1:4711', ''],
    ['a public one, from wherever it calls', '198.51.100.9', '10.0.0.5:4711', '198.51.100.9'],
    ['a port of its own', '198.51.100.9:7000', '10.0.0.5:4711', '198.51.100.9:7000'],
    ['IPv6 that is not routed', 'fd00::5', '[2001:db8::1]:9', ''],
    ['the machine itself', '127.0.0.1', '127.0.0.1:9', ''],
    ['nothing', '', '10.0.0.5:4711', ''],
    ['a name', 'example.org', '10.0.0.5:4711', ''],
  ])('%s', (_, said, from, expected) => {
    expect(reachableEndpoint(said, from)).toBe(expected);
  });
});

test('networks behind a node are those that nobody else has', () => {
  const self = {
    pubKey: keyOf('a'),
    endpointIp: '',
    ip: '',
    extraAllowedIps: ['10.1.0.0/24', '10.2.0.0/16', '10.78.0.0/30', 'x'],
  };
  const taken = ranges('10.78.0.0/29', '10.2.7.0/24');
  expect(acceptSelf(self, '10.0.0.1:1', taken)).toEqual({ pubKey: keyOf('a'), endpoint: '', networks: ['10.1.0.0/24'] });
  expect(acceptSelf({ ...self, pubKey: 'x' }, '10.0.0.1:1', taken).pubKey).toBe('');
});

describe('records', () => {
  const record = (last: number, letter: string, account = 'acme'): OverlayRecord => ({
    ...{ aid: aid(account), address: `10.78.0.${last}` as IpAddress, endpoint: '192.0.2.1', networks: ['10.1.0.0/24'] },
    pubKey: letter === '' ? '' : keyOf(letter),
  });

  test('are read as they were written; anything else is none', () => {
    expect(decodeOverlayRecord(encodeOverlayRecord(record(1, 'a')))).toEqual(record(1, 'a'));
    for (const text of ['', '{}', '[]', 'null', '{"address":"10.0.0.1","networks":[],"aid":"/"}']) {
      expect(decodeOverlayRecord(text)).toBeUndefined();
    }
    expect(nodeOfKey(overlayNodeKey(nid('n1')))).toBe('n1');
    expect(nodeOfKey(overlayAddressKey('10.78.0.1' as IpAddress))).toBeUndefined();
  });

  test('the set of a node has the others of its account that have said their key', () => {
    const records = new Map<Nid, OverlayRecord>([
      [nid('n1'), record(1, 'a')],
      [nid('n3'), record(3, 'c')],
      [nid('n2'), record(2, 'b')],
      [nid('n4'), record(4, '')],
      [nid('n5'), record(5, 'e', 'other')],
    ]);
    const set = overlaySetOf(nid('n1'), records, range);
    expect(set.address).toBe('10.78.0.1/29');
    expect(set.peers.map(({ ip }) => ip)).toEqual(['10.78.0.2', '10.78.0.3']);
    expect(overlaySetOf(nid('n9'), records, range)).toEqual({ peers: [], address: '' });
    expect(JSON.parse(peersPayloadOf(set))).toMatchObject({
      address: '10.78.0.1/29',
      peers: [{ pubKey: keyOf('b'), endpointIp: '192.0.2.1', vpnIp: '10.78.0.2', extraAllowedIps: ['10.1.0.0/24'] }, {}],
    });
  });
});
