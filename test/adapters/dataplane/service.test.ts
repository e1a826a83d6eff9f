import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import type { DataPlaneEvent, ListenerSpec } from '../../../src/ports/dataplane/data-plane.js';
import { endpoint, listener } from '../../support/listeners.js';
import { ask, backend, deadPort, echoBackend, endOf, exchange, inParallel, open } from '../../support/tcp-peers.js';

// What a service may ask of its listener, by way of the codec. The cases in full stand in native/test/service_test.cc.

const options = { signal: new AbortController().signal };

let plane: NativeDataPlane;
let events: DataPlaneEvent[];

beforeEach(() => {
  plane = new NativeDataPlane(loadAddon, {
    threads: 2,
    ejectionFailures: 3,
    ejectionReturnMs: 200,
    maxConnections: 6,
    busyPollUs: 50,
  });
  events = [];
  plane.start((event) => events.push(event));
});
afterEach(() => plane.stop(0));

async function listen(spec: ListenerSpec): Promise<number> {
  const [result] = await plane.apply({ upsert: [spec], remove: [] }, options);
  if (result?.listening !== true) throw new Error(`does not listen: ${JSON.stringify(result)}`);
  return result.port;
}

/** How a connection ends at once, whether it is told before or after it is up. */
function refusalOf(port: number): Promise<string> {
  return open(port).then(endOf, (error: NodeJS.ErrnoException) => String(error.code));
}

describe('limits', () => {
  test('of a service, and of all', async () => {
    await using server = await echoBackend();
    const spec = listener('a/b/c', [endpoint(server.port)], { maxConnections: 2 });
    const [port, other] = [await listen(spec), await listen(listener('a/b/d', [endpoint(server.port)]))];
    const clients = await Promise.all([port, port, other, other, other, other].map((at) => open(at)));
    for (const client of clients) expect(await ask(client, 'x')).toBe('x');
    expect([await refusalOf(port), await refusalOf(other)]).toEqual(['ECONNRESET', 'ECONNRESET']);
    expect(plane.info()).toMatchObject({ connections: 6, connectionLimit: 6 });
    const byId = plane.stats().toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(byId).toMatchObject([
      { active: 2, refused: 1, limited: 1 },
      { active: 4, refused: 1, limited: 1 },
    ]);
    for (const client of clients) client.destroy();
    await expect.poll(() => plane.info().connections).toBe(0);
    await expect.poll(() => plane.stats().map(({ active }) => active)).toEqual([0, 0]);
  });

  test('of idle time', async () => {
    await using server = await echoBackend();
    const client = await open(await listen(listener('a/b/c', [endpoint(server.port)], { idleMs: 150 })));
    for (let turn = 0; turn < 6; turn++) {
      expect(await ask(client, 'x')).toBe('x');
      await sleep(50);
    }
    expect(await endOf(client)).toBe('ECONNRESET');
  });
});

test('an endpoint that refuses is ejected, told of, and returns', async () => {
  await using server = await echoBackend();
  const dead = await deadPort();
  const spec = listener('a/b/c', [endpoint(server.port), endpoint(dead)]);
  const port = await listen(spec);
  await inParallel(40, 1, async () => void (await exchange(port, 'x')));
  const about = { id: 'a/b/c', endpoint: `127.0.0.1:${dead}` };
  expect(events).toEqual([{ type: 'ejected', ...about }]);
  expect(plane.stats()[0]?.endpoints.filter(({ ejected }) => ejected)).toMatchObject([{ port: dead }]);
  await expect.poll(() => events[1]).toEqual({ type: 'returned', ...about });
  await expect.poll(() => plane.stats()[0]?.endpoints.some(({ ejected }) => ejected)).toBe(false);
});

test('tiers: the second serves only while the first cannot', async () => {
  await using near = await echoBackend();
  await using far = await echoBackend();
  const endpoints = [endpoint(near.port), endpoint(far.port, 100, undefined, 1)];
  const port = await listen(listener('a/b/c', endpoints, { algorithm: 'random' }));
  await inParallel(30, 3, async () => void (await exchange(port, 'x')));
  expect([near.accepted(), far.accepted()]).toEqual([30, 0]);
});

test('affinity: a client address keeps its endpoint', async () => {
  await using a = await echoBackend();
  await using b = await echoBackend();
  const port = await listen(listener('a/b/c', [endpoint(a.port), endpoint(b.port)], { affinityMs: 60_000 }));
  await inParallel(1, 1, async () => void (await exchange(port, 'x')));
  await inParallel(29, 3, async () => void (await exchange(port, 'x')));
  expect([a.accepted(), b.accepted()].sort()).toEqual([0, 30]);
});

test.each([1, 2] as const)('PROXY headers: in, and out as version %i', async (sendProxy) => {
  const seen: Buffer[] = [];
  await using server = await backend((socket) => {
    socket.on('data', (chunk) => seen.push(chunk));
    socket.on('end', () => socket.end());
  });
  const port = await listen(listener('a/b/c', [endpoint(server.port)], { acceptProxy: true, sendProxy }));
  expect(await exchange(port, 'PROXY TCP4 192.0.2.1 198.51.100.2 1025 80\r\nhello')).toBe('');
  const version2 = '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x02\x04\x01\0\x50';
  expect(Buffer.concat(seen).toString('latin1')).toBe(
    `${sendProxy === 1 ? 'PROXY TCP4 192.0.2.1 198.51.100.2 1025 80\r\n' : version2}hello`,
  );
  const other = await open(port);
  other.write('no header');
  expect(await endOf(other)).toBe('ECONNRESET');
  await expect.poll(() => plane.statsOf(listener('a/b/c', []).id)).toMatchObject({ completed: 1, refused: 1, limited: 0 });
});

test('onStale: while a listener refuses, new connections are reset at once and running ones go on', async () => {
  await using server = await echoBackend();
  const spec = listener('a/b/c', [endpoint(server.port)]);
  const port = await listen(spec);
  const running = await open(port);
  expect(await ask(running, 'x')).toBe('x');
  await plane.apply({ upsert: [{ ...spec, listenPort: port, refuse: true }], remove: [] }, options);
  expect([await refusalOf(port), await refusalOf(port)]).toEqual(['ECONNRESET', 'ECONNRESET']);
  await sleep(200);
  expect(await ask(running, 'y')).toBe('y');
  expect(plane.stats()).toMatchObject([{ active: 1, refused: 2, limited: 0, endpoints: [{ draining: false }] }]);
  await plane.apply({ upsert: [{ ...spec, listenPort: port }], remove: [] }, options);
  expect(await exchange(port, 'z')).toBe('z');
  expect(await ask(running, 'w')).toBe('w');
  expect(events).toEqual([]);
  running.destroy();
});

test('a server that speaks first is heard by a client that has said nothing', async () => {
  await using server = await backend((socket) => socket.write('welcome'));
  const client = await open(await listen(listener('a/b/c', [endpoint(server.port)])));
  const [greeting] = await once(client, 'data');
  expect(String(greeting)).toBe('welcome');
  client.destroy();
});
