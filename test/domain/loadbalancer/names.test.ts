import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatHostPort } from '../../../src/domain/kernel/network.js';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { endpoint } from '../../support/endpoint.js';

const named = (list: readonly string[], before: ReturnType<typeof nameServers> = [], running: readonly string[] = []) =>
  nameServers(list.map(endpoint), before, running);
const shown = (servers: ReturnType<typeof nameServers>) => servers.map((one) => `${one.name} ${formatHostPort(one.endpoint)}`);

test('an endpoint keeps its server, and a new one gets a number that nobody has', () => {
  const first = named(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  expect(shown(first)).toEqual(['api-1 10.0.0.1:6443', 'api-2 10.0.0.2:6443', 'api-3 10.0.0.3:6443']);
  expect(shown(named(['10.0.0.3', '10.0.0.4', '10.0.0.1'], first))).toEqual([
    'api-1 10.0.0.1:6443',
    'api-2 10.0.0.4:6443',
    'api-3 10.0.0.3:6443',
  ]);
});

test('a number that still drains is given to nobody else', () => {
  const first = named(['10.0.0.1', '10.0.0.2']);
  expect(shown(named(['10.0.0.1', '10.0.0.4'], first, ['api-1', 'api-2']))).toEqual([
    'api-1 10.0.0.1:6443',
    'api-3 10.0.0.4:6443',
  ]);
});

test('the same endpoints in any order are the same servers, each with one name', () => {
  const lists = fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { maxLength: 20 });
  fc.assert(
    fc.property(lists, lists, (before, after) => {
      const texts = (list: readonly number[]) => list.map((last) => `10.0.0.${last}`);
      const known = named(texts(before));
      const servers = named(texts(after), known);
      expect(named(texts(after.toReversed()), servers)).toEqual(servers);
      expect(new Set(servers.map(({ name }) => name)).size).toBe(after.length);
      const kept = servers.filter((one) =>
        known.some((other) => formatHostPort(other.endpoint) === formatHostPort(one.endpoint)),
      );
      for (const one of kept) expect(known).toContainEqual(one);
    }),
  );
});
