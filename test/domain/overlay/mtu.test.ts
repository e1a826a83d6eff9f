import { expect, test } from 'vitest';
import { duePeers, lowerMtu, MOST_PROBED, probeSizes } from '../../../src/domain/overlay/mtu.js';
import { keyOf } from '../../fakes/fake-overlay-device.js';

test('56: sizes go down to what a path of 1280 carries', () => {
  const steps: number[] = [];
  for (let mtu: number | undefined = 1_420; mtu !== undefined; mtu = lowerMtu(mtu)) steps.push(mtu);
  expect(steps).toEqual([1_420, 1_380, 1_340, 1_280, 1_220]);
  // 60 bytes of WireGuard over IPv4.
  expect(1_220 + 60).toBeLessThanOrEqual(1_280);
  expect(probeSizes(1_420)).toEqual({ small: 64, large: 1_392 });
});

test('those that were asked longest ago are asked, a few at once, and none twice in a minute', () => {
  const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map(keyOf);
  const [a, b, c, d, e, f] = keys;
  expect(duePeers(keys, new Map(), 0)).toEqual([a, b, c, d]);
  expect(MOST_PROBED).toBe(4);
  const asked = new Map(keys.map((key, place) => [key, place * 10_000]));
  expect(duePeers(keys, asked, 49_999)).toEqual([]);
  expect(duePeers(keys, asked, 70_000)).toEqual([a, b, c]);
  expect(
    duePeers(
      [f, e, d, c, b, a].flatMap((key) => key ?? []),
      asked,
      200_000,
    ),
  ).toEqual([a, b, c, d]);
});
