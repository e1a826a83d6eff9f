import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatAddressPort, formatIpv4Range } from '../../../src/domain/kernel/network.js';
import { overlayChanges } from '../../../src/domain/overlay/diff.js';
import { type ObservedPeer, overlayAddress, type WantedPeer } from '../../../src/domain/overlay/model.js';
import { planOverlay } from '../../../src/domain/overlay/plan.js';
import { type OverlayMemory, readPeers, rememberApplied } from '../../../src/domain/overlay/readings.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';
import { endpoint, observed, present, ranges, setOf, wanted } from '../../support/overlay-peers.js';

const MINUTE = 60_000;
const nobody: OverlayMemory = new Map();

/** One reading a minute, of which the last is now. */
function watched(peer: ObservedPeer, minutes: number, declared?: WantedPeer): OverlayMemory {
  let memory = nobody;
  for (let at = 0; at <= minutes; at++) {
    memory = readPeers(memory, [peer], { now: at * MINUTE, monotonic: at * MINUTE });
    if (declared !== undefined) memory = rememberApplied(memory, [declared]);
  }
  return memory;
}

function endpointOf(peer: WantedPeer, there: ObservedPeer | undefined, memory: OverlayMemory = nobody): string {
  const state = observed({ peers: there === undefined ? [] : [there] });
  const [config] = planOverlay(setOf(peer), state, memory).config.peers;
  const choice = config?.endpoint;
  return choice?.at === 'address' ? formatAddressPort(choice.endpoint.address, choice.endpoint.port) : (choice?.at ?? 'no peer');
}

describe('endpoints', () => {
  const [d, e, o] = ['192.0.2.1', '192.0.2.9', '198.51.100.7:1024'];
  const a = (at: string) => wanted('a', at, '10.78.0.2');
  const there = (at: string, handshakeAt = 1_000) => ({ ...present('a', at, '10.78.0.2'), handshakeAt });
  test.each<[string, string, WantedPeer, ObservedPeer | undefined, OverlayMemory]>([
    ['a new peer gets its own', `${d}:51820`, a(d), undefined, nobody],
    ['a new peer behind NAT has none', 'none', a(''), undefined, nobody],
    ['the same one is kept', 'keep', a(d), there(d), nobody],
    ['54: a live peer that has roamed is not called back', 'keep', a(d), there(o), watched(there(o), 2, a(d))],
    ['nor after a restart of this process', 'keep', a(d), there(o), watched(there(o), 0)],
    ['53: one that is declared anew is taken at once', `${e}:51820`, a(e), there(d), watched(there(d), 1, a(d))],
    ['also of a peer that had none', `${e}:51820`, a(e), there(''), watched(there(''), 1, a(''))],
    ['one dead reading changes nothing', 'keep', a(d), there(o), watched(there(o), 3, a(d))],
    ['two of them call a roamed peer back', `${d}:51820`, a(d), there(o), watched(there(o), 4, a(d))],
    ['an endpoint that is lost stays while the peer lives', 'keep', a(''), there(d), watched(there(d), 2, a(d))],
    ['and through one dead reading', 'keep', a(''), there(d), watched(there(d), 3, a(d))],
    ['and goes with two', 'none', a(''), there(d), watched(there(d), 4, a(''))],
    ['a peer without a handshake is dead', `${d}:51820`, a(d), there(o, 0), watched(there(o, 0), 1)],
  ])('%s', (_, expected, peer, seen, memory) => {
    expect(endpointOf(peer, seen, memory)).toBe(expected);
  });

  test('a wall clock that jumps clears nothing', () => {
    const peer = there(o, 1_000_000);
    let memory = nobody;
    for (const [minute, jump] of [
      [0, 0],
      [1, 3_600_000],
      [2, -3_600_000],
      [2.9, 86_400_000],
    ] as const) {
      memory = readPeers(memory, [peer], { now: 1_000_000 + minute * MINUTE + jump, monotonic: minute * MINUTE });
      expect(endpointOf(a(''), peer, memory)).toBe('keep');
    }
  });

  test('a new handshake makes a dead peer live', () => {
    const dead = watched(there(o), 5);
    const again = readPeers(dead, [there(o, 2_000)], { now: 2_000, monotonic: 6 * MINUTE });
    expect([dead.get(keyOf('a'))?.deadReadings, again.get(keyOf('a'))?.deadReadings]).toEqual([3, 0]);
  });
});

describe('52: overlaps', () => {
  const failures = (...peers: readonly WantedPeer[]) =>
    planOverlay(setOf(...peers), observed({}), nobody).failed.map(({ publicKey, reason }) => `${publicKey[0]} ${reason}`);

  test('two peers with one range are both refused, each with the name of the other', () => {
    expect(failures(wanted('a', '', '10.78.0.2', '10.1.0.0/16'), wanted('b', '', '10.78.0.3', '10.1.2.0/24'))).toEqual([
      `a 10.1.0.0/16 overlaps 10.1.2.0/24 of peer ${keyOf('b')}`,
      `b 10.1.2.0/24 overlaps 10.1.0.0/16 of peer ${keyOf('a')}`,
    ]);
  });

  test('others are peers as they would be without them', () => {
    const peers = [wanted('a', '', '10.78.0.2'), wanted('b', '', '10.78.0.2'), wanted('c', '', '10.78.0.4')];
    const { config } = planOverlay(setOf(...peers), observed({}), nobody);
    expect(config.peers.map(({ publicKey }) => publicKey)).toEqual([keyOf('c')]);
  });

  test('a refused peer keeps what it has, and its ranges are not taken by another', () => {
    const twins = [wanted('a', '', '10.78.0.2', '10.1.0.0/24'), wanted('b', '', '10.78.0.3', '10.1.0.0/24')];
    const taker = wanted('c', '', '10.78.0.4', '10.2.0.0/24');
    const state = observed({ peers: [present('a', '', '10.78.0.2', '10.2.0.0/24')] });
    const { config, failed } = planOverlay(setOf(...twins, taker), state, nobody);
    expect(config.untouched).toEqual([keyOf('a')]);
    expect(config.routes.map(formatIpv4Range)).toEqual(['10.2.0.0/24']);
    expect(failed.map(({ publicKey }) => publicKey)).toEqual([keyOf('a'), keyOf('b'), keyOf('c')]);
  });

  test('a peer twice, one with the address of this node, and one whose endpoint is in its own range are refused', () => {
    const twice = wanted('a', '', '10.78.0.2');
    const mine = wanted('b', '', '10.78.0.1');
    const loop = wanted('c', '10.5.0.1', '10.78.0.4', '10.5.0.0/16');
    expect(failures(twice, twice, mine, loop)).toEqual([
      'a it is in the set twice',
      'b 10.78.0.1/32 holds 10.78.0.1, the address of this node',
      'c 10.5.0.0/16 holds its endpoint 10.5.0.1:51820',
    ]);
  });

  test('the node itself, which older control planes list, is no peer', () => {
    const { config, failed } = planOverlay(setOf(wanted('o', '', '10.78.0.1')), observed({}), nobody);
    expect([config.peers, failed]).toEqual([[], []]);
  });
});

describe('routes', () => {
  const routes = (connected: readonly string[], ...peers: readonly WantedPeer[]) =>
    planOverlay(setOf(...peers), observed({}, ...connected), nobody).config.routes.map(formatIpv4Range);

  test('what the prefix of the interface reaches needs none, everything else does', () => {
    expect(routes([], wanted('a', '', '10.78.0.2', '10.9.0.0/24', '172.16.0.9'))).toEqual(['10.9.0.0/24', '172.16.0.9/32']);
  });

  test('a network that another interface is connected to is left alone, one around it is not', () => {
    expect(routes(['10.9.0.0/24'], wanted('a', '', '10.78.0.2', '10.9.0.0/24', '10.9.0.7'))).toEqual([]);
    expect(routes(['10.9.0.0/24'], wanted('a', '', '10.78.0.2', '10.9.0.0/16'))).toEqual(['10.9.0.0/16']);
  });

  test('without an address of its own every range has one', () => {
    const set = { self: undefined, peers: [wanted('a', '', '10.78.0.2')], unusable: [] };
    expect(planOverlay(set, observed(undefined), nobody).config.routes.map(formatIpv4Range)).toEqual(['10.78.0.2/32']);
    const known = observed({ addresses: [overlayAddress('10.78.0.1/24') ?? never()] });
    expect(planOverlay(set, known, nobody).config.routes).toEqual([]);
  });
});

function never(): never {
  throw new Error('no address');
}

test('a larger interface is brought to the usual size, a smaller one stays', () => {
  expect([9_000, 1_420, 1_220].map((mtu) => planOverlay(setOf(), observed({ mtu }), nobody).config.mtu)).toEqual([
    1_420, 1_420, 1_220,
  ]);
});

describe('changes', () => {
  test('none for what is so already; a peer without keepalive gets one', () => {
    const peer = wanted('a', '192.0.2.1', '10.78.0.2', '10.9.0.0/24');
    const state = { peers: [present('a', '192.0.2.1', '10.9.0.0/24', '10.78.0.2')], routes: ranges('10.9.0.0/24') };
    const { config } = planOverlay(setOf(peer), observed(state), nobody);
    expect(overlayChanges(config, state)).toEqual({ remove: [], set: [], addRoutes: [], removeRoutes: [] });
    const [known] = state.peers;
    const silent = { ...state, peers: known === undefined ? [] : [{ ...known, keepaliveS: 0 }] };
    expect(overlayChanges(config, silent).set).toEqual([{ publicKey: keyOf('a'), endpoint: undefined, ranges: undefined }]);
  });

  test('a peer that loses its endpoint is removed and added', () => {
    const config = {
      ...{ self: undefined, mtu: 1_420, untouched: [], routes: [] },
      peers: [{ publicKey: keyOf('a'), endpoint: { at: 'none' as const }, ranges: ranges('10.78.0.2') }],
    };
    const changes = overlayChanges(config, { peers: [present('a', '192.0.2.1', '10.78.0.2')], routes: [] });
    expect(changes.remove).toEqual([keyOf('a')]);
    expect(changes.set).toEqual([{ publicKey: keyOf('a'), endpoint: undefined, ranges: ranges('10.78.0.2') }]);
  });

  const letters = fc.constantFrom('a', 'b', 'c', 'd');
  const peerArbitrary = fc.record({ letter: letters, at: fc.constantFrom('', '192.0.2.1', '192.0.2.2'), network: fc.nat(6) });
  const peersArbitrary = fc.uniqueArray(peerArbitrary, { selector: ({ letter }) => letter });

  test('law: what was changed is what was planned, and the next plan changes nothing', () => {
    const address = ({ letter }: { readonly letter: string }) => `10.78.1.${letter.charCodeAt(0)}`;
    fc.assert(
      fc.property(peersArbitrary, peersArbitrary, (before, after) => {
        const there = before.map((one) => present(one.letter, one.at, address(one), `10.1.${one.network}.0/24`));
        const set = setOf(...after.map((one) => wanted(one.letter, one.at, address(one), `10.1.${one.network}.0/24`)));
        const { config } = planOverlay(set, observed({ peers: there }), nobody);
        const { remove, set: changed, addRoutes } = overlayChanges(config, { peers: there, routes: [] });
        const next = new Map(there.filter(({ publicKey }) => !remove.includes(publicKey)).map((peer) => [peer.publicKey, peer]));
        for (const { publicKey, ...change } of changed) {
          const old = next.get(publicKey) ?? { ...present('a', ''), publicKey };
          next.set(publicKey, { ...old, endpoint: change.endpoint ?? old.endpoint, ranges: change.ranges ?? old.ranges });
        }
        const peers = [...next.values()];
        const again = planOverlay(set, observed({ peers, routes: addRoutes }), nobody).config;
        expect(overlayChanges(again, { peers, routes: addRoutes })).toEqual({
          remove: [],
          set: [],
          addRoutes: [],
          removeRoutes: [],
        });
        expect(new Set(next.keys())).toEqual(new Set([...config.peers.map(({ publicKey }) => publicKey), ...config.untouched]));
      }),
    );
  });
});

test('endpoints are written with or without a port', () => {
  expect(endpoint('192.0.2.1')).toEqual({ address: '192.0.2.1', port: 51_820 });
  expect(endpoint('[2001:db8::1]:7')).toEqual({ address: '2001:db8::1', port: 7 });
  expect(endpoint('example.org')).toBeUndefined();
});
