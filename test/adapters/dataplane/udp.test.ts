import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import type { L4Endpoint } from '../../../src/domain/dataplane/model.js';
import type { DataPlaneEvent, ListenerSpec } from '../../../src/ports/dataplane/data-plane.js';
import { address, endpoint, listener } from '../../support/listeners.js';
import { deadUdpPort, echoing, saying, UdpClient, udpBackend } from '../../support/udp-peers.js';

const options = { signal: new AbortController().signal };

let plane: NativeDataPlane;
let events: DataPlaneEvent[];

beforeEach(() => {
  plane = new NativeDataPlane(loadAddon);
  events = [];
  plane.start((event) => events.push(event));
});
afterEach(() => plane.stop(0));

const udp = (endpoints: readonly L4Endpoint[], changes: Partial<ListenerSpec> = {}) =>
  listener('a/b/c', endpoints, { protocol: 'udp', idleMs: 60_000, ...changes });

async function listen(spec: ListenerSpec): Promise<number> {
  const [result] = await plane.apply({ upsert: [spec], remove: [] }, options);
  if (result?.listening !== true) throw new Error(`does not listen: ${JSON.stringify(result)}`);
  return result.port;
}

const stats = () => plane.statsOf(udp([]).id);

describe('flows', () => {
  test('onStale: while a listener refuses, new clients get nothing and flows that are go on', async () => {
    await using server = await udpBackend((message) => [`got ${message}`]);
    const spec = udp([endpoint(server.port)]);
    const port = await listen(spec);
    await using known = await UdpClient.to(port);
    expect(await known.ask('1')).toBe('got 1');
    await plane.apply({ upsert: [{ ...spec, listenPort: port, refuse: true }], remove: [] }, options);
    await using late = await UdpClient.to(port);
    late.send('2');
    expect(await known.ask('3')).toBe('got 3');
    await expect.poll(() => stats()).toMatchObject({ active: 1, refused: 1 });
    await plane.apply({ upsert: [{ ...spec, listenPort: port }], remove: [] }, options);
    expect(await late.ask('4')).toBe('got 4');
  });

  test('a client keeps its endpoint, and gets as many replies as there are', async () => {
    await using first = await udpBackend((message) => [`first ${message}`, 'and more', '']);
    await using second = await udpBackend((message) => [`second ${message}`, 'and more', '']);
    await using client = await UdpClient.to(await listen(udp([endpoint(first.port), endpoint(second.port)])));
    const answer = await client.ask('1');
    expect(answer).toMatch(/^(first|second) 1$/);
    expect([await client.next(), await client.next()]).toEqual(['and more', '']);
    for (let turn = 2; turn < 10; turn++) {
      expect(await client.ask(`${turn}`)).toBe(answer?.replace('1', `${turn}`));
      expect([await client.next(), await client.next()]).toEqual(['and more', '']);
    }
    expect(first.sources() + second.sources()).toBe(1);
    expect(stats()).toMatchObject({ active: 1, bytesIn: 9, dropped: 0 });
  });

  test('a reply after a long pause arrives; activity in either direction renews (faults.md 13)', async () => {
    await using server = await udpBackend(() => []);
    const spec = udp([endpoint(server.port)], { idleMs: 800 });
    await using client = await UdpClient.to(await listen(spec));
    client.send('x');
    for (let turn = 0; turn < 3; turn++) {
      await sleep(500);
      server.push(`after ${turn}`);
      expect(await client.next()).toBe(`after ${turn}`);
    }
    expect(stats()).toMatchObject({ active: 1, completed: 0 });
    await expect.poll(stats, { timeout: 3_000 }).toMatchObject({ active: 0, completed: 1 });
  });

  test('one request and one reply end early, others do not (faults.md 14)', async () => {
    await using server = await udpBackend(echoing);
    const port = await listen(udp([endpoint(server.port)]));
    await using query = await UdpClient.to(port);
    await using session = await UdpClient.to(port);
    await query.ask('x');
    await session.ask('x');
    await session.ask('y');
    expect(stats()).toMatchObject({ active: 2 });
    await expect.poll(stats, { timeout: 5_000 }).toMatchObject({ active: 1, completed: 1 });
    await sleep(500);
    expect(stats()).toMatchObject({ active: 1 });
  });

  test('at the cap the one that is idle the longest gives way', async () => {
    await using server = await udpBackend(echoing);
    const port = await listen(udp([endpoint(server.port)], { maxConnections: 2 }));
    await using a = await UdpClient.to(port);
    await using b = await UdpClient.to(port);
    await using c = await UdpClient.to(port);
    for (const client of [a, b, a, c]) expect(await client.ask('x')).toBe('x');
    expect(server.sources()).toBe(3);
    expect(await a.ask('y')).toBe('y');
    expect(server.sources()).toBe(3);
    expect(await b.ask('y')).toBe('y');
    expect(server.sources()).toBe(4);
    expect(stats()).toMatchObject({ active: 2, evicted: 2 });
  });

  test.each([0, 1, 1_472, 1_473, 65_507])('%i bytes arrive as they are', async (size) => {
    await using server = await udpBackend(echoing);
    await using client = await UdpClient.to(await listen(udp([endpoint(server.port)])));
    const message = 'abcdefg'.repeat(10_000).slice(0, size);
    expect(await client.ask(message)).toBe(message);
  });

  test.each([
    ['round-robin', 0],
    ['least-connections', 0],
    // Five standard deviations: 5 * sqrt(200 * 0.75 * 0.25).
    ['random', 31],
  ] as const)('%s follows the weights', async (algorithm, tolerance) => {
    await using light = await udpBackend(echoing);
    await using heavy = await udpBackend(echoing);
    const port = await listen(udp([endpoint(light.port, 1), endpoint(heavy.port, 3)], { algorithm }));
    // All at one time: a port that is given again would be the same client again.
    const clients = await Promise.all(Array.from({ length: 200 }, () => UdpClient.to(port)));
    for (const client of clients) expect(await client.ask('x')).toBe('x');
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
    expect(Math.abs(heavy.sources() - 150)).toBeLessThanOrEqual(tolerance);
  });

  test.each(['source-hash', 'affinity'])('%s: an address, not a socket, has an endpoint', async (way) => {
    await using first = await udpBackend(saying('first'));
    await using second = await udpBackend(saying('second'));
    const changes = way === 'affinity' ? { affinityMs: 10_000 } : ({ algorithm: 'source-hash' } as const);
    const port = await listen(udp([endpoint(first.port), endpoint(second.port)], changes));
    const answers = new Set<string | undefined>();
    for (let turn = 0; turn < 10; turn++) {
      await using client = await UdpClient.to(port);
      answers.add(await client.ask('x'));
    }
    expect(answers.size).toBe(1);
  });

  test('endpoints of the second tier have none while there are others', async () => {
    await using near = await udpBackend(saying('near'));
    await using far = await udpBackend(saying('far'));
    const [close, distant] = [endpoint(near.port), endpoint(far.port, 100, address('127.0.0.1'), 1)];
    await using client = await UdpClient.to(await listen(udp([close, distant])));
    expect(await client.ask('x')).toBe('near');
    await listen(udp([distant]));
    expect(await client.ask('x')).toBe('far');
  });
});

describe('changes', () => {
  test('an ICMP error moves the client to another endpoint', async () => {
    await using server = await udpBackend(saying('lives'));
    const spec = udp([endpoint(await deadUdpPort()), endpoint(server.port)]);
    const port = await listen(spec);
    for (let turn = 0; turn < 4; turn++) {
      await using client = await UdpClient.to(port);
      expect((await client.ask('x', 100)) ?? (await client.ask('x'))).toBe('lives');
    }
    expect(stats()?.reset).toBeGreaterThanOrEqual(1);
    expect(stats()?.dialFailures).toBe(stats()?.reset);
  });

  test('a client with one socket leaves a withdrawn endpoint at once (faults.md 11)', async () => {
    await using first = await udpBackend(saying('first'));
    await using second = await udpBackend(saying('second'));
    const spec = udp([endpoint(first.port)], { drainMs: 300 });
    await using client = await UdpClient.to(await listen(spec));
    expect(await client.ask('x')).toBe('first');
    await listen({ ...spec, endpoints: [endpoint(second.port)] });
    expect(await client.ask('x')).toBe('second');
    first.push('late');
    expect(await client.next()).toBe('late');
    expect(stats()?.endpoints).toMatchObject(
      [
        { port: first.port, draining: true },
        { port: second.port, draining: false },
      ].toSorted((a, b) => a.port - b.port),
    );
    await expect.poll(() => events).toEqual([{ type: 'drained', id: spec.id, endpoint: `127.0.0.1:${first.port}`, closed: 1 }]);
    first.push('too late');
    expect(await client.ask('x')).toBe('second');
  });

  test('scaled to zero a client is refused at once (faults.md 9)', async () => {
    await using server = await udpBackend(echoing);
    const spec = udp([endpoint(server.port)]);
    await using client = await UdpClient.to(await listen(spec));
    expect(await client.ask('x')).toBe('x');
    await listen(udp([]));
    client.send('y');
    expect(await client.next()).toBe('ECONNREFUSED');
    expect(server.received()).toBe(1);
  });

  test('a client that asks all the time is served once there is an endpoint (faults.md 10)', async () => {
    await using server = await udpBackend(saying('served'));
    await using client = await UdpClient.to(await listen(udp([])));
    for (let turn = 0; turn < 3; turn++) expect([await client.ask('x', 200)]).not.toEqual(['served']);
    await listen(udp([endpoint(server.port)]));
    let answer: string | undefined;
    for (let turn = 0; turn < 5 && answer !== 'served'; turn++) answer = await client.ask('x', 200);
    expect(answer).toBe('served');
  });

  test('table changes do not touch flows of endpoints that stay', async () => {
    await using server = await udpBackend(echoing);
    await using other = await udpBackend(echoing);
    await using client = await UdpClient.to(await listen(udp([endpoint(server.port)])));
    for (let turn = 0; turn < 10; turn++) {
      expect(await client.ask(`${turn}`)).toBe(`${turn}`);
      await listen(udp([endpoint(server.port, turn + 1), ...(turn % 2 === 0 ? [endpoint(other.port)] : [])]));
    }
    expect([server.sources(), other.received()]).toEqual([1, 0]);
  });

  test('IPv6 in front, IPv4 behind', async () => {
    const { createSocket } = await import('node:dgram');
    await using server = await udpBackend(echoing);
    const port = await listen(udp([endpoint(server.port)], { address: address('::1') }));
    const socket = createSocket('udp6');
    const answer = new Promise<string>((resolve) => socket.on('message', (message, from) => resolve(`${message} ${from.port}`)));
    socket.send('x', port, '::1');
    expect(await answer).toBe(`x ${port}`);
    socket.close();
  });
});
