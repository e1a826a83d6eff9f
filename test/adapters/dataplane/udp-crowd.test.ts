import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import { endpoint, listener } from '../../support/listeners.js';
import { echoing, UdpCrowd, udpBackend } from '../../support/udp-peers.js';

let plane: NativeDataPlane;

beforeEach(() => {
  plane = new NativeDataPlane(loadAddon);
  plane.start(() => {});
});
afterEach(() => plane.stop(0));

async function service(backendPort: number): Promise<number> {
  const spec = listener('a/b/c', [endpoint(backendPort)], { protocol: 'udp', idleMs: 60_000 });
  const [result] = await plane.apply({ upsert: [spec], remove: [] }, { signal: new AbortController().signal });
  if (result?.listening !== true) throw new Error(`does not listen: ${JSON.stringify(result)}`);
  return result.port;
}

const stats = () => plane.stats()[0];
const descriptors = () => readdirSync('/proc/self/fd').length;

test('10,000 clients at one time', async () => {
  await using server = await udpBackend(echoing);
  // Each has a descriptor here; a machine that allows few is asked for fewer.
  const clients = Math.min(10_000, plane.info().connectionLimit);
  expect(await new UdpCrowd('hold', await service(server.port), clients).answered()).toBe(clients);
  expect(server.sources()).toBe(clients);
  expect(stats()).toMatchObject({ active: clients, evicted: 0, dropped: 0 });
});

test('queries from ever new sockets do not pile up (faults.md 14)', async () => {
  const [rate, seconds] = [500, 6];
  await using server = await udpBackend(echoing);
  const port = await service(server.port);
  const before = descriptors();
  const crowd = new UdpCrowd('churn', port, rate, seconds).answered();
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, descriptors() - before);
  }, 50);
  expect(await crowd).toBe(rate * seconds);
  clearInterval(watch);
  // Each stays for 2 s; without that there were 3,000.
  expect(most).toBeLessThan(1.5 * rate * 2);
  await expect.poll(stats, { timeout: 10_000 }).toMatchObject({ active: 0, completed: rate * seconds, evicted: 0 });
  expect(descriptors() - before).toBeLessThan(20);
});

test('stops under load', async () => {
  await using server = await udpBackend(echoing);
  const crowd = new UdpCrowd('churn', await service(server.port), 500, 2).answered();
  await expect.poll(() => server.received()).toBeGreaterThan(100);
  const begun = performance.now();
  await plane.stop(500);
  expect(performance.now() - begun).toBeLessThan(2_500);
  await sleep(100);
  const heard = server.received();
  await crowd;
  expect(server.received()).toBe(heard);
});
