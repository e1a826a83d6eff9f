import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HostPort } from '../../src/domain/kernel/network.js';
import { apiServer, open, request } from '../support/api-servers.js';
import { eventually } from '../support/eventually.js';
import { HaproxyMachine } from '../support/haproxy-machine.js';

const options = { signal: new AbortController().signal };
const isFull = process.env.HOLDFAST_TEST_SIZE === 'full';
const CHANGES = isFull ? 100 : 40;
const RATE = isFull ? 1_000 : 300;
/** Each so many of them has an endpoint by name, which HAProxy takes by a reload alone. */
const RELOAD_EACH = 5;

/** Connections at a rate until it is stopped: how many, and what went wrong. */
function load(port: number) {
  const errors: string[] = [];
  const open = new Set<Promise<unknown>>();
  const [TICK_MS, started] = [10, Date.now()];
  let sent = 0;
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const due = Math.floor(((Date.now() - started) * RATE) / 1_000);
      for (; sent < due; sent++) {
        const one: Promise<unknown> = request(port)
          .catch((error: unknown) => errors.push(String(error)))
          .finally(() => open.delete(one));
        open.add(one);
      }
      await sleep(TICK_MS);
    }
    await Promise.all(open);
  })();
  const stop = async () => {
    isOver = true;
    await running;
    return { sent, errors, perSecond: (sent * 1_000) / (Date.now() - started) };
  };
  return { stop };
}

test(`${CHANGES} changes of the list under ${RATE} requests a second: no error, and at most 2 old workers`, async () => {
  const machine = await HaproxyMachine.make();
  const keeper = machine.keeper();
  const first = await apiServer('a');
  const others = await Promise.all(['b', 'c', 'd', 'e', 'f'].map((name) => apiServer(name)));
  const endpoints = [first, ...others].map((server) => server.endpoint);
  await keeper.bring(endpoints.slice(0, 3), options);
  const running = load(machine.port);
  const streams = [];
  let mostWorkers = 0;
  for (let change = 0; change < CHANGES; change++) {
    const list: HostPort[] = [0, 1, 2].flatMap((place) => endpoints[(change * 2 + place) % endpoints.length] ?? []);
    if (change % RELOAD_EACH === 0) list.push({ ...first.endpoint, host: 'localhost' });
    await keeper.bring(list, options);
    // Whoever is in the way of a worker's end.
    if (change % RELOAD_EACH === 1) streams.push(await open(machine.port));
    for (const stream of streams.slice(-1)) await stream.ask();
    mostWorkers = Math.max(mostWorkers, (await machine.workers()).length);
  }
  const { sent, errors, perSecond } = await running.stop();
  for (const stream of streams) stream.close();
  const { reloads, changes } = keeper.counts();
  console.log(
    JSON.stringify({ sent, perSecond: Math.round(perSecond), errors: errors.length, reloads, changes, mostWorkers }),
  );
  expect(errors).toEqual([]);
  expect(perSecond).toBeGreaterThan(RATE / 2);
  expect(mostWorkers).toBeLessThanOrEqual(3);
  expect(changes).toBeGreaterThan(CHANGES / 2);
});

test('an idle stream outlives the request time-out, and one that was never answered does not', async () => {
  const machine = await HaproxyMachine.make();
  const server = await apiServer('a');
  await machine.keeper(1).bring([server.endpoint], options);
  const stream = await open(machine.port);
  expect(await stream.ask()).toBe('a');
  await sleep(4_000);
  expect(await stream.ask()).toBe('a');
  stream.close();
});

test('an IPv6 endpoint is balanced over, and the balancer is reached by IPv6', async () => {
  const machine = await HaproxyMachine.make();
  const [four, six] = [await apiServer('four'), await apiServer('six', '::1')];
  const keeper = machine.keeper();
  await keeper.bring([six.endpoint], options);
  expect(await request(machine.port, '::1')).toBe('six');
  expect(await request(machine.port)).toBe('six');
  await keeper.bring([four.endpoint], options);
  await keeper.bring([six.endpoint], options);
  expect(await request(machine.port)).toBe('six');
  expect(await machine.calls()).toEqual(['restart']);
});

test('a server that dies is left, and its streams are cut so that their clients come back', async () => {
  const machine = await HaproxyMachine.make();
  const [a, b] = [await apiServer('a'), await apiServer('b')];
  await machine.keeper().bring([a.endpoint, b.endpoint], options);
  await a.close();
  for (let time = 0; time < 20; time++) expect(await request(machine.port)).toBe('b');
  const up = async () => (await machine.parts().runtime.observe(options))?.servers.map(({ isUp }) => isUp);
  await eventually(up).toEqual([false, true]);
});
