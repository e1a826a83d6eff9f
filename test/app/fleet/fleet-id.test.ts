import { expect, test } from 'vitest';
import { fleetIdOf } from '../../../src/app/fleet/fleet-id.js';
import { FakeControlStore } from '../../fakes/fake-control-store.js';

const options = { signal: new AbortController().signal };

test('made once, and the same for all replicas that begin together', async () => {
  const store = new FakeControlStore();
  let made = 0;
  const newId = () => `fleet-${++made}`;
  const ids = await Promise.all([fleetIdOf(store, newId, options), fleetIdOf(store, newId, options)]);
  expect(new Set(ids).size).toBe(1);
  expect(await fleetIdOf(store, newId, options)).toBe(ids[0]);
});
