import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import type { DataPlaneEvent, ListenerSpec } from '../../../src/ports/dataplane/data-plane.js';
import { endpoint, listener } from '../../support/listeners.js';
import {
  ask,
  backend,
  deadPort,
  echoBackend,
  endOf,
  exchange,
  inParallel,
  listening,
  open,
  portOf,
} from '../../support/tcp-peers.js';

const options = { signal: new AbortController().signal };

let plane: NativeDataPlane;
let events: DataPlaneEvent[];

beforeEach(() => {
  plane = new NativeDataPlane(loadAddon);
  events = [];
  plane.start((event) => events.push(event));
});
afterEach(() => plane.stop(0));

async function listen(spec: ListenerSpec): Promise<number> {
  const [result] = await plane.apply({ upsert: [spec], remove: [] }, options);
  if (result?.listening !== true) throw new Error(`does not listen: ${JSON.stringify(result)}`);
  return result.port;
}

describe('endpoints', () => {
  test('one dead of three: no connection fails (faults.md 21)', async () => {
    await using first = await echoBackend();
    await using second = await echoBackend();
    const endpoints = [endpoint(first.port), endpoint(await deadPort()), endpoint(second.port)];
    for (const algorithm of ['random', 'round-robin'] as const) {
      const spec = listener(`a/${algorithm}/c`, endpoints, { algorithm });
      const port = await listen(spec);
      const failures: unknown[] = [];
      await inParallel(1_000, 32, async () => {
        const answer = await exchange(port, 'x').catch((error: unknown) => error);
        if (answer !== 'x') failures.push(answer);
      });
      expect(failures).toEqual([]);
      await expect
        .poll(() => plane.statsOf(spec.id))
        .toMatchObject({ completed: 1_000, failed: 0, reset: 0, bytesIn: 1_000, bytesOut: 1_000 });
      // Five in a row, and those that were under way: then it is ejected.
      expect(plane.statsOf(spec.id)?.dialFailures).toBeGreaterThanOrEqual(5);
      expect(plane.statsOf(spec.id)?.dialFailures).toBeLessThan(100);
    }
  });

  test.each([
    // Per worker the round is exact; two workers are each at most one round of ten off.
    ['round-robin', 10],
    // Five standard deviations: 5 * sqrt(1000 * 0.5 * 0.5).
    ['random', 80],
  ] as const)('%s follows the weights', async (algorithm, tolerance) => {
    await using a = await echoBackend();
    await using b = await echoBackend();
    await using c = await echoBackend();
    const endpoints = [endpoint(a.port, 5), endpoint(b.port, 3), endpoint(c.port, 2)];
    const port = await listen(listener('a/b/c', endpoints, { algorithm }));
    await inParallel(1_000, 16, async () => void (await exchange(port, 'x')));
    for (const [server, share] of [
      [a, 500],
      [b, 300],
      [c, 200],
    ] as const) {
      expect(Math.abs(server.accepted() - share)).toBeLessThanOrEqual(tolerance);
    }
  });

  test('without endpoints a connection is reset at once', async () => {
    const spec = listener('a/b/c', []);
    // The reset may be there before node has told of the connection.
    const client = connect({ host: '127.0.0.1', port: await listen(spec) });
    expect(await endOf(client)).toBe('ECONNRESET');
    await expect.poll(() => plane.statsOf(spec.id)).toMatchObject({ active: 0, refused: 1 });
  });
});

describe('streams', () => {
  test('a half-close is carried both ways (faults.md 15)', async () => {
    await using server = await backend((socket) => {
      socket.write('hello ');
      socket.on('data', (chunk) => socket.write(`got ${chunk} `));
      socket.on('end', () => socket.end('and the end'));
    });
    const port = await listen(listener('a/b/c', [endpoint(server.port)]));
    expect(await exchange(port, 'x')).toBe('hello got x and the end');
  });

  test('a reset is carried as one (faults.md 16)', async () => {
    const ends: Promise<string>[] = [];
    await using server = await backend((socket) => {
      socket.write('x');
      ends.push(endOf(socket));
    });
    const client = await open(await listen(listener('a/b/c', [endpoint(server.port)])));
    await once(client, 'data');
    client.resetAndDestroy();
    await expect.poll(() => ends.length).toBe(1);
    expect(await ends[0]).toBe('ECONNRESET');
  });

  test('bytes flow while the main thread does not', async () => {
    const memory = new SharedArrayBuffer(8);
    const counters = new Int32Array(memory);
    const peer = new Worker(new URL('../../support/ping-pong-worker.ts', import.meta.url), { workerData: memory });
    try {
      const [serverPort] = await once(peer, 'message');
      peer.postMessage(await listen(listener('a/b/c', [endpoint(Number(serverPort))])));
      await expect.poll(() => Atomics.load(counters, 0)).toBeGreaterThan(10);
      const before = Atomics.load(counters, 0);
      Atomics.store(counters, 1, 0);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
      expect(Atomics.load(counters, 0) - before).toBeGreaterThan(200);
      expect(Atomics.load(counters, 1)).toBeLessThan(500);
    } finally {
      await peer.terminate();
    }
  });
});

describe('changes', () => {
  test('the same table again does not touch connections', async () => {
    await using server = await echoBackend();
    const spec = listener('a/b/c', [endpoint(server.port)]);
    const client = await open(await listen(spec));
    expect(await ask(client, 'one')).toBe('one');
    await listen(spec);
    await listen({ ...spec, endpoints: [endpoint(server.port, 7)], algorithm: 'random' });
    expect(await ask(client, 'two')).toBe('two');
    expect(plane.statsOf(spec.id)).toMatchObject({ active: 1, endpoints: [{ active: 1, total: 1, draining: false }] });
    client.destroy();
  });

  test('a withdrawn endpoint keeps its connections until the deadline, and no longer (faults.md 19)', async () => {
    await using server = await echoBackend();
    await using other = await echoBackend();
    const spec = listener('a/b/c', [endpoint(server.port)], { drainMs: 300 });
    const port = await listen(spec);
    const client = await open(port);
    await ask(client, 'one');
    const begun = performance.now();
    await listen({ ...spec, endpoints: [endpoint(other.port)] });
    expect(await ask(client, 'two')).toBe('two');
    await exchange(port, 'x');
    expect([server.accepted(), other.accepted()]).toEqual([1, 1]);
    expect(await endOf(client)).toBe('ECONNRESET');
    expect(performance.now() - begun).toBeGreaterThan(290);
    const drained = { type: 'drained', id: 'a/b/c', endpoint: `127.0.0.1:${server.port}`, closed: 1 };
    await expect.poll(() => events).toEqual([drained]);
    expect(plane.statsOf(spec.id)).toMatchObject({ drained: 1, endpoints: [{ port: other.port }] });
  });

  test('a drain ends when the endpoint comes back', async () => {
    await using server = await echoBackend();
    const spec = listener('a/b/c', [endpoint(server.port)], { drainMs: 200 });
    const client = await open(await listen(spec));
    await ask(client, 'one');
    await listen({ ...spec, endpoints: [] });
    expect(plane.statsOf(spec.id)?.endpoints).toMatchObject([{ active: 1, draining: true }]);
    await listen(spec);
    await sleep(400);
    expect(await ask(client, 'two')).toBe('two');
    expect(events).toEqual([]);
    client.destroy();
  });

  test('endpoints replaced one by one under load: no connection fails (faults.md 20)', async () => {
    await using a = await echoBackend();
    await using b = await echoBackend();
    const spec = listener('a/b/c', [endpoint(a.port)], { drainMs: 5_000 });
    const port = await listen(spec);
    const failures: unknown[] = [];
    const load = inParallel(1_500, 16, async () => {
      const answer = await exchange(port, 'x').catch((error: unknown) => error);
      if (answer !== 'x') failures.push(answer);
    });
    for (let turn = 0; turn < 40; turn++) {
      await listen({ ...spec, endpoints: [endpoint(turn % 2 === 0 ? b.port : a.port)] });
      await sleep(3);
    }
    await load;
    expect(failures).toEqual([]);
  });
});

describe('listeners', () => {
  test('six hundred of them, in batches, each carries its own', async () => {
    await using server = await echoBackend();
    const specs = Array.from({ length: 600 }, (_, index) => listener(`a/b/${index}`, [endpoint(server.port)]));
    const results = await plane.apply({ upsert: specs, remove: [] }, options);
    expect(results.map(({ id }) => id)).toEqual(specs.map(({ id }) => id));
    const ports = results.map((result) => (result.listening ? result.port : 0));
    expect(new Set(ports).size).toBe(600);
    await inParallel(300, 16, async (index) => expect(await exchange(ports[index * 2] ?? 0, `${index}`)).toBe(`${index}`));
    expect(plane.stats()).toHaveLength(600);
    await plane.apply({ upsert: [], remove: specs.map(({ id }) => id) }, options);
    expect([plane.stats(), plane.info().listeners]).toEqual([[], 0]);
  });

  test('a foreign program holds the port: named, others unharmed, had when it is free', async () => {
    await using server = await echoBackend();
    const foreign = await listening(createServer(), 0);
    const wanted = listener('a/b/c', [endpoint(server.port)], { listenPort: portOf(foreign) });
    const results = await plane.apply({ upsert: [wanted, listener('a/b/d', [endpoint(server.port)])], remove: [] }, options);
    expect(results[0]).toEqual({
      id: 'a/b/c',
      listening: false,
      reason: 'address_in_use',
      detail: 'bind: Address already in use',
    });
    expect(await exchange(results[1]?.listening ? results[1].port : 0, 'x')).toBe('x');
    foreign.close();
    await once(foreign, 'close');
    expect(await exchange(await listen(wanted), 'y')).toBe('y');
  });

  test('an address that is not this machine’s', async () => {
    const foreign = listener('a/b/c', [], { address: '192.0.2.99' as ListenerSpec['address'] });
    const [result] = await plane.apply({ upsert: [foreign], remove: [] }, options);
    expect(result).toMatchObject({ listening: false, reason: 'address_unavailable' });
  });

  test('IPv6 in front, IPv4 behind', async () => {
    await using server = await echoBackend();
    const port = await listen(listener('a/b/c', [endpoint(server.port)], { address: '::1' as ListenerSpec['address'] }));
    const client = connect({ host: '::1', port });
    expect(await ask(client, 'x')).toBe('x');
    client.destroy();
  });
});
