import { describe, expect, test } from 'vitest';
import { formatIpv4Range, type Ipv4Range } from '../../src/domain/kernel/network.js';
import {
  type EndpointChoice,
  networkOf,
  type OverlayAddress,
  type OverlayConfig,
  overlayAddress,
  peerEndpoint,
} from '../../src/domain/overlay/model.js';
import type { OverlayDevice } from '../../src/ports/overlay/overlay-device.js';
import { keyOf } from '../fakes/fake-overlay-device.js';

const options = { signal: new AbortController().signal };
const [a, b, c] = [keyOf('a'), keyOf('b'), keyOf('c')];

export interface OverlayDeviceRig {
  readonly device: OverlayDevice;
  /** From now on what there is cannot be read. */
  readonly breakReading: () => Promise<void>;
}

const ranges = (...texts: readonly string[]): readonly Ipv4Range[] => texts.flatMap((text) => networkOf(text) ?? []);
const self: OverlayAddress | undefined = overlayAddress('10.78.0.1/16');
const none: EndpointChoice = { at: 'none' };

function at(text: string): EndpointChoice {
  const endpoint = peerEndpoint(text);
  if (endpoint === undefined) throw new Error(`no endpoint: ${text}`);
  return { at: 'address', endpoint };
}

function config(parts: Partial<OverlayConfig>): OverlayConfig {
  return { self, mtu: 1_420, peers: [], untouched: [], routes: [], ...parts };
}

async function shown(device: OverlayDevice) {
  const { link } = await device.observe(options);
  if (link === undefined) return undefined;
  return {
    up: link.up,
    mtu: link.mtu,
    port: link.port,
    addresses: link.addresses.map(({ address, prefixLength }) => `${address}/${prefixLength}`),
    peers: link.peers
      .map(
        (peer) =>
          `${peer.publicKey[0]} ${peer.endpoint?.address ?? '-'} ${peer.ranges.map(formatIpv4Range).toSorted().join(',')}`,
      )
      .toSorted(),
    routes: link.routes.map(formatIpv4Range).toSorted(),
  };
}

const base = { up: true, mtu: 1_420, port: 51_820, addresses: ['10.78.0.1/16'], peers: [], routes: [] };

/** Every OverlayDevice must pass. */
export function overlayDeviceContract(name: string, make: () => Promise<OverlayDeviceRig>): void {
  describe(`OverlayDevice: ${name}`, () => {
    test('the key of the node is there before its interface is, and stays', async () => {
      const { device } = await make();
      const before = await device.observe(options);
      expect(before.link).toBeUndefined();
      await device.set(config({}), options);
      expect((await device.observe(options)).publicKey).toBe(before.publicKey);
      expect(await shown(device)).toEqual(base);
    });

    test('has exactly the peers and routes that it is given, and the same again changes nothing', async () => {
      const { device } = await make();
      const both = config({
        peers: [
          { publicKey: a, endpoint: at('192.0.2.1'), ranges: ranges('10.78.0.2', '10.9.0.0/24') },
          { publicKey: b, endpoint: none, ranges: ranges('10.78.0.3') },
        ],
        routes: ranges('10.9.0.0/24'),
      });
      for (let times = 0; times < 2; times++) {
        expect(await device.set(both, options)).toEqual([]);
        const peers = ['a 192.0.2.1 10.78.0.2/32,10.9.0.0/24', 'b - 10.78.0.3/32'];
        expect(await shown(device)).toEqual({ ...base, peers, routes: ['10.9.0.0/24'] });
      }
      await device.set(config({ peers: [{ publicKey: b, endpoint: none, ranges: ranges('10.78.0.3') }] }), options);
      expect(await shown(device)).toEqual({ ...base, peers: ['b - 10.78.0.3/32'] });
    });

    test('an endpoint is set, kept, and taken away; a range moves from one peer to another', async () => {
      const { device } = await make();
      const one = (endpoint: EndpointChoice, ...texts: readonly string[]) =>
        config({ peers: [{ publicKey: a, endpoint, ranges: ranges(...texts) }] });
      await device.set(one(at('192.0.2.1'), '10.78.0.2'), options);
      await device.set(one({ at: 'keep' }, '10.78.0.2', '10.9.0.0/24'), options);
      expect((await shown(device))?.peers).toEqual(['a 192.0.2.1 10.78.0.2/32,10.9.0.0/24']);
      await device.set(one(at('192.0.2.7'), '10.78.0.2', '10.9.0.0/24'), options);
      expect((await shown(device))?.peers).toEqual(['a 192.0.2.7 10.78.0.2/32,10.9.0.0/24']);
      await device.set(one(none, '10.78.0.2', '10.9.0.0/24'), options);
      expect((await shown(device))?.peers).toEqual(['a - 10.78.0.2/32,10.9.0.0/24']);
      const moved = config({
        peers: [
          { publicKey: c, endpoint: none, ranges: ranges('10.78.0.4', '10.9.0.0/24') },
          { publicKey: a, endpoint: { at: 'keep' }, ranges: ranges('10.78.0.2') },
        ],
      });
      await device.set(moved, options);
      expect((await shown(device))?.peers).toEqual(['a - 10.78.0.2/32', 'c - 10.78.0.4/32,10.9.0.0/24']);
    });

    test('those that are not to be touched stay; address and size are those that are given', async () => {
      const { device } = await make();
      await device.set(config({ peers: [{ publicKey: a, endpoint: at('192.0.2.1'), ranges: ranges('10.78.0.2') }] }), options);
      await device.set(config({ self: overlayAddress('10.78.0.9/16'), mtu: 1_220, untouched: [a] }), options);
      const changed = { ...base, mtu: 1_220, addresses: ['10.78.0.9/16'], peers: ['a 192.0.2.1 10.78.0.2/32'] };
      expect(await shown(device)).toEqual(changed);
      await device.set(config({ self: undefined, mtu: 1_220, untouched: [a] }), options);
      expect(await shown(device)).toEqual(changed);
    });

    test('what cannot be read is an error, and nothing is changed', async () => {
      const { device, breakReading } = await make();
      await device.set(config({ peers: [{ publicKey: a, endpoint: none, ranges: ranges('10.78.0.2') }] }), options);
      await breakReading();
      const unreadable = expect.objectContaining({ code: 'overlay.unreadable' });
      await expect(device.observe(options)).rejects.toEqual(unreadable);
      await expect(device.set(config({}), options)).rejects.toEqual(unreadable);
    });

    test('it goes with its peers, and once more is no failure', async () => {
      const { device } = await make();
      await device.set(config({ peers: [{ publicKey: a, endpoint: none, ranges: ranges('10.78.0.2') }] }), options);
      await device.remove(options);
      expect(await shown(device)).toBeUndefined();
      await device.remove(options);
      expect(await shown(device)).toBeUndefined();
    });

    test('aborted calls reject and change nothing', async () => {
      const { device } = await make();
      const aborted = { signal: AbortSignal.abort() };
      await expect(device.set(config({}), aborted)).rejects.toThrow();
      await expect(device.observe(aborted)).rejects.toThrow();
      expect(await shown(device)).toBeUndefined();
    });
  });
}
