import { describe, expect, test } from 'vitest';
import { setVpnPeers } from '../../../src/domain/instruction/kinds/set-vpn-peers.js';
import { formatIpv4Range } from '../../../src/domain/kernel/network.js';
import { networkOf, overlayAddress, publicKey } from '../../../src/domain/overlay/model.js';
import { type DeclaredPeer, wantedSet } from '../../../src/domain/overlay/schema.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';

const good: DeclaredPeer = { pubKey: keyOf('a'), endpointIp: '192.0.2.1', vpnIp: '10.78.0.2', extraAllowedIps: ['10.1.2.3/24'] };

test('a set is read peer by peer: one that is of no use is named, and the others are peers', () => {
  const set = wantedSet([good, { ...good, pubKey: 'short' }], '10.78.0.1/16');
  expect(set.self).toEqual({ address: '10.78.0.1', prefixLength: 16 });
  expect(set.peers.map(({ ranges }) => ranges.map(formatIpv4Range))).toEqual([['10.78.0.2/32', '10.1.2.0/24']]);
  expect(set.unusable).toEqual([{ publicKey: 'short', reason: 'its key is not 43 characters of base64 and =' }]);
});

test.each<[string, Partial<DeclaredPeer>, RegExp]>([
  ['a key of 33 bytes', { pubKey: `${'a'.repeat(43)}=` }, /its key/],
  ['a name as endpoint', { endpointIp: 'example.org' }, /its endpoint is no IP address: "example.org"/],
  ['no address', { vpnIp: '' }, /"" is no IPv4 address/],
  ['IPv6', { vpnIp: 'fd00::1' }, /"fd00::1" is no IPv4 address/],
  ['a prefix that is too long', { extraAllowedIps: ['10.0.0.0/33'] }, /no IPv4 address or network/],
  ['everything', { extraAllowedIps: ['0.0.0.0/0'] }, /every packet of this node/],
])('%s is of no use', (_, change, reason) => {
  expect(wantedSet([{ ...good, ...change }], undefined).unusable).toEqual([
    { publicKey: change.pubKey ?? good.pubKey, reason: expect.stringMatching(reason) },
  ]);
});

test('no endpoint, no networks and a range twice are nothing wrong', () => {
  const { peers } = wantedSet(
    [
      { ...good, endpointIp: '', extraAllowedIps: null },
      { ...good, extraAllowedIps: ['10.78.0.2'] },
    ],
    '',
  );
  expect(peers.map(({ endpoint, ranges }) => [endpoint?.address, ranges.length])).toEqual([
    [undefined, 1],
    ['192.0.2.1', 1],
  ]);
});

test('networks and addresses', () => {
  expect(networkOf('10.1.255.255/12')).toEqual({ network: '10.0.0.0', prefixLength: 12 });
  expect([networkOf('10.1/8'), networkOf('x'), networkOf('1.2.3.4/-1')]).toEqual([undefined, undefined, undefined]);
  expect([overlayAddress('10.0.0.1'), overlayAddress('10.0.0.1/0'), overlayAddress('10.0.0.1/33')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect([publicKey(keyOf('a')), publicKey('')]).toEqual([keyOf('a'), undefined]);
});

describe('I4: the payload of SET_VPN_PEERS', () => {
  test('is a plan', () => {
    expect(setVpnPeers.read?.({ peers: [good], address: '10.78.0.1/16' }, { yaml: () => [] })).toMatchObject({
      work: { plan: { do: 'set_overlay', wanted: { peers: [{ publicKey: keyOf('a') }] } }, newestOnly: true },
    });
  });

  test.each<[string, unknown, RegExp]>([
    ['without peers', {}, /peers: a list/],
    ['a peer without an address', { peers: [{ pubKey: 'k' }] }, /peers.0.vpnIp: text/],
    ['a text without end', { peers: [{ ...good, pubKey: 'k'.repeat(129) }] }, /at most 128 characters/],
    ['too many networks', { peers: [{ ...good, extraAllowedIps: Array(257).fill('10.0.0.1') }] }, /at most 256/],
    ['too many peers', { peers: Array(10_001).fill(good) }, /at most 10000/],
  ])('%s is refused', (_, payload, problem) => {
    expect(setVpnPeers.read?.(payload, { yaml: () => [] })).toEqual({ problem: expect.stringMatching(problem) });
  });
});
