import { beforeEach, describe, expect, test } from 'vitest';
import { OverlayEffect } from '../../../src/app/overlay/overlay-effect.js';
import { OverlayKeeper } from '../../../src/app/overlay/overlay-keeper.js';
import { overlayStatus } from '../../../src/app/overlay/overlay-status.js';
import type { WantedSet } from '../../../src/domain/overlay/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOverlayDevice, keyOf } from '../../fakes/fake-overlay-device.js';
import { setOf, wanted } from '../../support/overlay-peers.js';

const options = { signal: new AbortController().signal };
const a = wanted('a', '192.0.2.1', '10.78.0.2');
const b = wanted('b', '', '10.78.0.3', '10.9.0.0/24');

let clock: FakeClock;
let device: FakeOverlayDevice;
let keeper: OverlayKeeper;
let logger: FakeLogger;

beforeEach(() => {
  clock = new FakeClock();
  device = new FakeOverlayDevice();
  logger = new FakeLogger();
  keeper = new OverlayKeeper({ device, clock, logger });
});

const apply = (set: WantedSet) => keeper.inTurn((turn) => turn.apply(set), options);

test('a set is brought about exactly, and the same again changes nothing', async () => {
  await apply(setOf(a, b));
  expect(device.dump()).toBe(`10.78.0.1/16 mtu 1420
a 192.0.2.1:51820 10.78.0.2/32
b - 10.78.0.3/32,10.9.0.0/24
routes 10.9.0.0/24
`);
  await apply(setOf(a, b));
  expect(device.changes).toBe(1);
  await apply(setOf(a));
  expect(device.dump()).toBe('10.78.0.1/16 mtu 1420\na 192.0.2.1:51820 10.78.0.2/32\nroutes -\n');
});

test('an endpoint that could not be set is a change the next time as well', async () => {
  await apply(setOf(a));
  device.touch(keyOf('a'), { handshakeAt: clock.now() });
  device.refused.set(keyOf('a'), 'wg: no');
  const moved = setOf(wanted('a', '192.0.2.9', '10.78.0.2'));
  expect((await apply(moved)).failed).toEqual([{ publicKey: keyOf('a'), reason: 'wg: no' }]);
  device.refused.clear();
  expect((await apply(moved)).failed).toEqual([]);
  expect(device.dump()).toContain('a 192.0.2.9:51820 ');
});

test('one after the other, in the order of the calls; a failure is its own', async () => {
  const order: string[] = [];
  const slow = keeper.inTurn(async () => {
    await clock.sleep(1_000, options);
    order.push('slow');
  }, options);
  const work = async () => {
    order.push('failing');
    throw new Error('no');
  };
  const failing = expect(keeper.inTurn(work, options)).rejects.toThrow('no');
  const last = apply(setOf(a)).then(() => order.push('last'));
  await clock.advance(1_000);
  await Promise.all([slow, failing, last]);
  expect(order).toEqual(['slow', 'failing', 'last']);
  await expect(keeper.inTurn(async () => {}, { signal: AbortSignal.abort() })).rejects.toThrow();
});

test('unreadable state changes nothing, and the set is remembered for the next try', async () => {
  await apply(setOf(a));
  device.fail('overlay.unreadable');
  await expect(apply(setOf(b))).rejects.toMatchObject({ code: 'overlay.unreadable' });
  device.fail(undefined);
  expect(device.dump()).toContain('a 192.0.2.1:51820');
  expect(keeper.last()?.peers).toEqual([b]);
});

describe('56: packets that vanish', () => {
  const live = async () => {
    await apply(setOf(a, b));
    for (const letter of ['a', 'b']) device.touch(keyOf(letter), { handshakeAt: clock.now() });
  };

  test('the interface is brought to what the smallest path carries, and stays there', async () => {
    await live();
    device.pathMtu.set('10.78.0.2', 1_300);
    await apply(setOf(a, b));
    expect(device.link?.mtu).toBe(1_280);
    await clock.advance(60_000);
    device.pathMtu.set('10.78.0.3', 1_220);
    await apply(setOf(a, b));
    expect(device.link?.mtu).toBe(1_220);
    expect(logger.lines.filter(({ message }) => message.includes('large packets'))).toHaveLength(2);
  });

  test('a peer that answers nothing says nothing of its path', async () => {
    await live();
    device.pathMtu.set('10.78.0.2', 0);
    await apply(setOf(a, b));
    expect(device.link?.mtu).toBe(1_420);
  });

  test('one without a handshake is not asked', async () => {
    await apply(setOf(a));
    device.pathMtu.set('10.78.0.2', 1_300);
    await apply(setOf(a));
    expect(device.link?.mtu).toBe(1_420);
  });
});

test('55: whether a peer is up follows from its latest handshake', async () => {
  expect(overlayStatus(keeper.reading(), 0)).toBeUndefined();
  await apply(setOf(a, b));
  device.touch(keyOf('a'), { handshakeAt: clock.now() - 5_000, received: 10, sent: 20 });
  await apply(setOf(a, b));
  const states = () =>
    overlayStatus(keeper.reading(), clock.monotonic())?.peers.map(({ state, handshakeAgeMs }) => [state, handshakeAgeMs]);
  expect(states()).toEqual([
    ['up', 5_000],
    ['down', undefined],
  ]);
  await clock.advance(180_000);
  expect(states()?.[0]).toEqual(['down', 185_000]);
  expect(overlayStatus(keeper.reading(), clock.monotonic())).toMatchObject({
    ...{ link: 'kernel', address: '10.78.0.1/16', mtu: 1_420 },
    peers: [
      { address: '10.78.0.2', endpoint: '192.0.2.1:51820', receivedBytes: 10, sentBytes: 20 },
      { ranges: ['10.78.0.3/32', '10.9.0.0/24'] },
    ],
  });
});

test('the effect answers with what the node is, and who was refused', async () => {
  const effect = new OverlayEffect(keeper, () => '10.0.0.9');
  device.refused.set(keyOf('b'), 'wg: no');
  expect(await effect.run({ do: 'set_overlay', wanted: setOf(a, b) }, options)).toEqual({
    kind: 'json',
    type: 'NODE_VPN_PEER',
    value: {
      nodePeer: { pubKey: keyOf('o'), endpointIp: '10.0.0.9', vpnIp: '10.78.0.1' },
      failed: [{ pubKey: keyOf('b'), reason: 'wg: no' }],
    },
  });
});
