import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chooseByHash } from '../../../src/domain/dataplane/rendezvous.js';
import { type IpAddress, ipAddress, numberToIpv4 } from '../../../src/domain/kernel/network.js';

function ip(text: string): IpAddress {
  const address = ipAddress(text);
  if (address === undefined) throw new Error(text);
  return address;
}

const endpoints = [1, 2, 3].map((last) => ({ address: ip(`10.0.0.${last}`), port: 80, weight: 1 }));
const anyEndpoints = fc.uniqueArray(
  fc.record({
    address: fc.oneof(fc.ipV4(), fc.ipV6()).map(ip),
    port: fc.integer({ min: 1, max: 65_535 }),
    weight: fc.integer({ min: 1, max: 100 }),
  }),
  { minLength: 2, maxLength: 20, selector: ({ address, port }) => `${address} ${port}` },
);
const anyClient = fc.oneof(fc.ipV4(), fc.ipV6()).map(ip);

test('nobody to choose from', () => {
  expect(chooseByHash(ip('10.9.9.9'), [])).toBeUndefined();
});

describe('laws of rendezvous', () => {
  test('one that goes moves its own clients only, and the order of a list means nothing', () => {
    fc.assert(
      fc.property(anyClient, anyEndpoints, (client, list) => {
        const chosen = chooseByHash(client, list);
        expect(chooseByHash(client, list.toReversed())).toBe(chosen);
        for (const gone of list) {
          const after = chooseByHash(
            client,
            list.filter((each) => each !== gone),
          );
          if (gone === chosen) expect(after).not.toBe(chosen);
          else expect(after).toBe(chosen);
        }
      }),
    );
  });

  test('shares are those of the weights', () => {
    const weighted = endpoints.map((endpoint, index) => ({ ...endpoint, weight: index + 1 }));
    const counts = new Map(weighted.map(({ weight }) => [weight, 0]));
    const clients = 6_000;
    for (let client = 0; client < clients; client++) {
      const chosen = chooseByHash(numberToIpv4(0x0a09_0000 + client), weighted)?.weight ?? 0;
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    }
    // Five standard deviations of a share of a half.
    for (const [weight, count] of counts) expect(Math.abs(count - (clients * weight) / 6)).toBeLessThan(200);
  });
});
