import { describe, expect, test } from 'vitest';
import { parseAddresses, parseLink, parseRoutes } from '../../../src/adapters/overlay/ip-json.js';
import { parseWgDump } from '../../../src/adapters/overlay/wg-dump.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';

const own = `priv=\t${keyOf('o')}\t51820\toff`;
const line = (change: Readonly<Record<number, string>> = {}) => {
  const fields = [keyOf('a'), '(none)', '192.0.2.1:51820', '10.78.0.2/32,10.9.0.0/24,fd00::/64', '1700000000', '10', '20', '5'];
  return Object.entries(change)
    .reduce((all, [place, text]) => all.with(Number(place), text), fields)
    .join('\t');
};

describe('wg show wg0 dump', () => {
  test('is the interface and its peers', () => {
    expect(parseWgDump(`${own}\n${line()}\n${line({ 2: '(none)', 3: '(none)', 4: '0', 7: 'off' })}\n`)).toMatchObject({
      ...{ privateKey: 'priv=', publicKey: keyOf('o'), port: 51_820 },
      peers: [
        {
          ...{ publicKey: keyOf('a'), handshakeAt: 1_700_000_000_000, received: 10, sent: 20, keepaliveS: 5 },
          endpoint: { address: '192.0.2.1', port: 51_820 },
          ranges: [
            { network: '10.78.0.2', prefixLength: 32 },
            { network: '10.9.0.0', prefixLength: 24 },
          ],
        },
        { endpoint: undefined, ranges: [], handshakeAt: 0, keepaliveS: 0 },
      ],
    });
    expect(parseWgDump('(none)\t(none)\t0\toff\n')).toEqual({ privateKey: undefined, publicKey: '', port: 0, peers: [] });
  });

  test.each([
    ['nothing', ''],
    ['an interface without a port', 'a\tb'],
    ['a peer without a key', `${own}\n${line({ 0: 'x' })}`],
    ['a peer that was cut', `${own}\n${line().slice(0, 60)}`],
    ['an endpoint that is none', `${own}\n${line({ 2: 'example.org:1' })}`],
    ['a range that is none', `${own}\n${line({ 3: '10.0.0.0/40' })}`],
    ['a handshake that is no number', `${own}\n${line({ 4: '-' })}`],
  ])('%s is not understood, rather than in part', (_, text) => {
    expect(parseWgDump(text)).toBeUndefined();
  });
});

describe('ip -j', () => {
  const link = { mtu: 1_420, flags: ['POINTOPOINT', 'UP'], linkinfo: { info_kind: 'wireguard' } };
  test.each([
    [link, { kind: 'kernel', up: true, mtu: 1_420 }],
    [
      { ...link, flags: [], linkinfo: { info_kind: 'tun' } },
      { kind: 'wireguard-go', up: false, mtu: 1_420 },
    ],
    [
      { mtu: 1_500, flags: ['UP'] },
      { kind: undefined, up: true, mtu: 1_500 },
    ],
    [{ flags: [] }, undefined],
  ])('a link %#', (value, expected) => {
    expect(parseLink(JSON.stringify([value]))).toEqual(expected);
  });

  test('addresses and routes; what is something else is not understood', () => {
    const info = [{ addr_info: [{ local: '10.78.0.1', prefixlen: 16 }] }, {}];
    expect(parseAddresses(JSON.stringify(info))).toEqual([{ address: '10.78.0.1', prefixLength: 16 }]);
    expect(parseAddresses('[{"addr_info":[{}]}]')).toBeUndefined();
    const routes = [
      { dst: 'default', dev: 'eth0' },
      { dst: '10.0.0.0/24', dev: 'eth0' },
      { dst: '10.0.1.1', dev: 'eth1' },
    ];
    expect(
      parseRoutes(JSON.stringify(routes))?.map(({ range, device }) => `${range.network}/${range.prefixLength} ${device}`),
    ).toEqual(['10.0.0.0/24 eth0', '10.0.1.1/32 eth1']);
    expect(parseRoutes('[{"dst":"10.0.0.0/24"}]', 'wg0')).toHaveLength(1);
    expect([parseRoutes(''), parseRoutes('['), parseRoutes('{}'), parseRoutes('[{"dst":"x","dev":"y"}]')]).toEqual([
      [],
      undefined,
      undefined,
      undefined,
    ]);
  });
});
