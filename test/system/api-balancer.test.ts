import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { SystemClock } from '../../src/adapters/clock/system-clock.js';
import { MemoryOutbox } from '../../src/adapters/outbox/memory-outbox.js';
import { sourceArguments } from '../../src/adapters/threads/typescript-worker.js';
import { BalancerSubsystem } from '../../src/app/loadbalancer/balancer-subsystem.js';
import { formatHostPort, type HostPort } from '../../src/domain/kernel/network.js';
import { payloadOf } from '../../src/domain/link/payload.js';
import { apiServer, open, request } from '../support/api-servers.js';
import { eventually } from '../support/eventually.js';
import { HaproxyMachine } from '../support/haproxy-machine.js';
import { FakeSession } from '../support/instruction-rig.js';

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
  console.log(JSON.stringify({ sent, perSecond: Math.round(perSecond), errors: errors.length, reloads, changes, mostWorkers }));
  expect(errors).toEqual([]);
  expect(perSecond).toBeGreaterThan(RATE / 2);
  expect(mostWorkers).toBeLessThanOrEqual(3);
  expect(changes).toBeGreaterThan(CHANGES / 2);
});

test('an idle stream outlives the request time-out, and one that says nothing does not', async () => {
  const machine = await HaproxyMachine.make();
  const server = await apiServer('a');
  await machine.keeper(1).bring([server.endpoint], options);
  const stream = await open(machine.port);
  expect(await stream.ask()).toBe('a');
  const silent = await open(machine.port);
  await sleep(4_000);
  expect(await stream.ask()).toBe('a');
  stream.close();
  await expect(silent.ask()).rejects.toThrow('the connection was cut');
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

test('killed before each of its steps, HAProxy serves on, and the next process gets it to the new list', async () => {
  const machine = await HaproxyMachine.make();
  const [a, b, c] = [await apiServer('a'), await apiServer('b'), await apiServer('c')];
  const list = [b, c].map(({ endpoint }) => formatHostPort(endpoint));
  let deaths = 0;
  for (let step = 0; deaths === step; step++) {
    await machine.keeper().bring([a.endpoint, b.endpoint], options);
    const program = [join(import.meta.dirname, 'support/balance-and-die.ts'), machine.root, machine.port, step, ...list];
    const child = spawn(process.execPath, [...sourceArguments, ...program.map(String)], { stdio: 'inherit' });
    const [code, signal] = await once(child, 'exit');
    expect(['a', 'b', 'c']).toContain(await request(machine.port));
    if (signal === 'SIGKILL') deaths++;
    else expect(code).toBe(0);
    await machine.keeper().bring(step % 2 === 0 ? [b.endpoint, c.endpoint] : undefined, options);
    await expectOneState(machine);
  }
  expect(deaths).toBeGreaterThan(12);
  expect(await machine.calls()).toEqual(['restart']);
});

test('a broken file is repaired while HAProxy serves', async () => {
  const machine = await HaproxyMachine.make();
  const server = await apiServer('a');
  await machine.keeper().bring([server.endpoint], options);
  const good = await readFile(machine.file, 'utf8');
  for (const broken of [good.slice(0, 400), '', `${good}frontend k8s_api\n`, good.replaceAll('127.0.0.1', '10.66.66.66')]) {
    await writeFile(machine.file, broken);
    await machine.keeper().bring(undefined, options);
    expect(await readFile(machine.file, 'utf8')).toBe(good);
    expect(await request(machine.port)).toBe('a');
  }
  expect(await machine.calls()).toEqual(['restart']);
});

test('streams outlive a reload, and however many reloads there are, there are 2 old workers at most', async () => {
  const machine = await HaproxyMachine.make();
  const server = await apiServer('a');
  const streams = [];
  for (let reload = 0; reload < 20; reload++) {
    // Another time-out is another configuration.
    await machine.keeper(60 + reload).bring([server.endpoint], options);
    const stream = await open(machine.port);
    expect(await stream.ask()).toBe('a');
    streams.push(stream);
    expect((await machine.workers()).length).toBeLessThanOrEqual(3);
    for (const kept of streams.slice(-2)) expect(await kept.ask()).toBe('a');
  }
  for (const stream of streams) stream.close();
  expect((await machine.calls()).filter((call) => call === 'reload')).toHaveLength(19);
});

test('an injection through an endpoint is refused whole, and HAProxy serves the last list on', async () => {
  const machine = await HaproxyMachine.make();
  const [a, evil] = [await apiServer('a'), await apiServer('evil')];
  const good = formatHostPort(a.endpoint);
  let list: readonly string[] = [good];
  const balancer = new BalancerSubsystem({
    keeper: machine.keeper(),
    ask: async (type) => ({ type, tag: 't', jsonB64: payloadOf(list) }),
    outbox: new MemoryOutbox(10),
    clock: new SystemClock(),
    random: () => 0,
    logger: machine.logger,
  });
  balancer.opened(new FakeSession());
  await balancer.refresh(options);
  const file = await readFile(machine.file, 'utf8');
  const other = formatHostPort(evil.endpoint);
  for (const bad of [`${good}\n    server x ${other}`, `${other} check`, `${good}#`, 'unix@/tmp/x', `${other}\r\n`, '$HOME:1']) {
    list = [good, bad];
    await expect(balancer.refresh(options)).rejects.toThrow(/^loadbalancer.bad_list: .*is no endpoint of an API server/);
    expect(await readFile(machine.file, 'utf8')).toBe(file);
    expect(await request(machine.port)).toBe('a');
  }
  expect(balancer.problems()).toHaveLength(1);
  expect(await machine.calls()).toEqual(['restart']);
});

/** The process has what the file says, and the file what is remembered. */
async function expectOneState(machine: HaproxyMachine): Promise<void> {
  const { config, runtime } = machine.parts();
  const remembered = (await config.remembered(options)) ?? [];
  const text = await config.read(options);
  const lines = [...(text ?? '').matchAll(/^ {4}server (\S+) (\S+) check/gm)].map(([, name, at]) => `${name} ${at}`);
  expect(lines).toEqual(remembered.map(({ name, endpoint }) => `${name} ${formatHostPort(endpoint)}`));
  const servers = (await runtime.observe(options))?.servers ?? [];
  const ready = servers.filter(({ admin, isChecked }) => admin === 'ready' && isChecked);
  expect(ready.map(({ name, address, port }) => `${name} ${address}:${port}`).toSorted()).toEqual(lines.toSorted());
}
