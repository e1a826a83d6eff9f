import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { BalancerKeeper, HAPROXY_UNIT } from '../../../src/app/loadbalancer/balancer-keeper.js';
import { MARK } from '../../../src/domain/loadbalancer/render.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeHaproxy, type HaproxyStep } from '../../fakes/fake-haproxy.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeUnits } from '../../fakes/fake-units.js';
import { endpoint } from '../../support/endpoint.js';

const options = { signal: new AbortController().signal };
const sha256 = (text: string) => hash('sha256', text, 'hex');
const settings = { port: 6_446, socket: '/run/haproxy/admin.sock', requestSeconds: 60 };

function machine({ installed = true } = {}) {
  const [clock, haproxy, logger] = [new FakeClock(), new FakeHaproxy(), new FakeLogger()];
  const units = new FakeUnits(clock);
  let takes = true;
  if (installed)
    units.install(HAPROXY_UNIT, () => {
      haproxy.load();
      return 'runs';
    });
  units.onReload = () => {
    if (takes) haproxy.load();
  };
  const parts = { config: haproxy, runtime: haproxy, units, settings, clock, logger, sha256 };
  /** The next process of the agent. */
  const keeper = () => new BalancerKeeper(parts);
  const bring = (...list: readonly string[]) => keeper().bring(list.map(endpoint), options);
  const keep = () => keeper().bring(undefined, options);
  const refuseReloads = (refuse: boolean) => {
    takes = !refuse;
  };
  return { clock, haproxy, units, keeper, bring, keep, refuseReloads };
}

const one = 'api-1 10.0.0.1 6443 ready checked';
const two = 'api-2 10.0.0.2 6443 ready checked';

test('the first list is written and HAProxy is started; the same again does nothing', async () => {
  const { haproxy, units, bring } = machine();
  const reading = await bring('10.0.0.1', '10.0.0.2');
  expect(reading).toMatchObject({ state: 'serving', servers: [{ name: 'api-1' }, { name: 'api-2' }], running: { pid: 101 } });
  expect(haproxy.dump()).toBe(`${one}\n${two}`);
  expect(haproxy.log).toEqual(['place', 'load']);
  await bring('10.0.0.2', '10.0.0.1');
  expect(haproxy.log).toEqual(['place', 'load']);
  expect([units.restarts, units.reloads]).toEqual([[HAPROXY_UNIT], []]);
});

test('what the runtime API can do is no reload, and ends in the same file', async () => {
  const { haproxy, units, bring } = machine();
  await bring('10.0.0.1', '10.0.0.2');
  haproxy.log.length = 0;
  await bring('10.0.0.1', '10.0.0.3');
  expect(haproxy.log).toEqual(['place', 'add api-3', 'ready api-3', 'drain api-2', 'remove api-2']);
  const dump = haproxy.dump();
  expect(dump).toBe(`${one}\napi-3 10.0.0.3 6443 ready checked`);
  haproxy.load();
  expect(haproxy.dump()).toBe(dump);
  expect(units.reloads).toEqual([]);
});

test('a server that left the list keeps its streams, and its name, until they have ended', async () => {
  const { haproxy, bring, keep } = machine();
  await bring('10.0.0.1', '10.0.0.2');
  haproxy.sessions.set('api-2', 1);
  await bring('10.0.0.1');
  await bring('10.0.0.1', '10.0.0.3');
  expect(haproxy.dump()).toBe(`${one}\napi-2 10.0.0.2 6443 drain checked\napi-3 10.0.0.3 6443 ready checked`);
  haproxy.sessions.clear();
  await keep();
  expect(haproxy.dump()).toBe(`${one}\napi-3 10.0.0.3 6443 ready checked`);
});

test('an empty list is ignored, and the last one survives a restart', async () => {
  const { haproxy, bring, keep } = machine();
  expect([await bring(), await keep()]).toEqual([{ state: 'waiting' }, { state: 'waiting' }]);
  expect(haproxy.log).toEqual([]);
  await bring('10.0.0.1');
  await bring();
  haproxy.file = undefined;
  expect(await keep()).toMatchObject({ state: 'serving', servers: [{ name: 'api-1' }] });
  expect(haproxy.file).toContain('server api-1 10.0.0.1:6443');
  expect(haproxy.dump()).toBe(one);
});

test('a name is taken by a reload', async () => {
  const { haproxy, units, bring } = machine();
  await bring('10.0.0.1');
  await bring('10.0.0.1', 'cp.example');
  expect(units.reloads).toEqual([HAPROXY_UNIT]);
  expect(haproxy.dump()).toBe(`${one}\napi-2 cp.example 6443 ready checked`);
});

test.each([
  ['broken', MARK.slice(0, 20)],
  ['edited', `${MARK}\nfrontend k8s_api\n    bind *:1\n`],
  ['emptied', ''],
  ['replaced', 'frontend www\n  bind *:80\n'],
])('a %s file is repaired without a reload of a process that is right', async (_, text) => {
  const { haproxy, units, bring, keep } = machine();
  await bring('10.0.0.1');
  const good = haproxy.file;
  haproxy.file = text;
  await keep();
  expect(haproxy.file).toBe(good);
  expect(units.reloads).toEqual([]);
});

test('what others do to the process is undone', async () => {
  const { haproxy, units, bring, keep } = machine();
  await bring('10.0.0.1', '10.0.0.2');
  haproxy.alter('api-1', { admin: 'maint' });
  haproxy.alter('api-2', { port: 1 });
  await keep();
  expect(haproxy.dump()).toBe(`${one}\n${two}`);
  expect(units.reloads).toEqual([HAPROXY_UNIT]);
});

test("somebody else's HAProxy is left alone", async () => {
  const { haproxy, units, bring } = machine();
  haproxy.file = 'frontend www\n  bind *:80\n';
  await expect(bring('10.0.0.1')).rejects.toMatchObject({ code: 'loadbalancer.foreign' });
  expect([haproxy.file, haproxy.memory, units.restarts]).toEqual(['frontend www\n  bind *:80\n', undefined, []]);
});

test('a file that HAProxy does not take is never placed, and its list not remembered', async () => {
  const { haproxy, bring } = machine();
  await bring('10.0.0.1');
  const before = haproxy.file;
  haproxy.refused.set('10.0.0.2', 'no such thing');
  await expect(bring('10.0.0.2')).rejects.toThrow('haproxy -c: no such thing');
  expect(haproxy.file).toBe(before);
  expect(haproxy.memory).toMatchObject([{ endpoint: { host: '10.0.0.1' } }]);
  expect(haproxy.dump()).toBe(one);
});

test('a reload that no worker follows is no success, and is tried again', async () => {
  const { clock, haproxy, units, bring, refuseReloads } = machine();
  await bring('10.0.0.1');
  refuseReloads(true);
  for (const times of [1, 2]) {
    const failing = bring('10.0.0.1', 'cp.example').catch((error: unknown) => error);
    await clock.advance(11_000);
    expect(await failing).toMatchObject({ code: 'loadbalancer.not_served' });
    expect(units.reloads).toHaveLength(times);
  }
  refuseReloads(false);
  await bring('10.0.0.1', 'cp.example');
  expect(haproxy.dump()).toBe(`${one}\napi-2 cp.example 6443 ready checked`);
});

test('where the runtime API refuses a change, a reload makes it', async () => {
  const { haproxy, units, bring } = machine();
  await bring('10.0.0.1');
  haproxy.failNext('change', 'loadbalancer.not_changed');
  await bring('10.0.0.1', '10.0.0.2');
  expect(haproxy.dump()).toBe(`${one}\n${two}`);
  expect(units.reloads).toEqual([HAPROXY_UNIT]);
});

test('a process without our runtime API is reloaded, and one that has ended is started', async () => {
  const { haproxy, units, bring, keep } = machine();
  await bring('10.0.0.1');
  haproxy.die();
  await keep();
  expect(units.reloads).toEqual([HAPROXY_UNIT]);
  expect(haproxy.dump()).toBe(one);
});

test('a machine without HAProxy, or without services, has no balancer', async () => {
  const { haproxy, units, bring } = machine({ installed: false });
  expect(await bring('10.0.0.1')).toEqual({ state: 'absent' });
  units.remove();
  expect(await bring('10.0.0.1')).toEqual({ state: 'absent' });
  expect([haproxy.file, haproxy.memory]).toEqual([undefined, undefined]);
});

test.each(['read', 'test', 'remember', 'place', 'observe'] satisfies HaproxyStep[])(
  'killed at %s, with a new list or the former one the next process gets to what is right',
  async (step) => {
    for (const next of [['10.0.0.1', '10.0.0.3'], []]) {
      const { haproxy, bring } = machine();
      await bring('10.0.0.1', '10.0.0.2');
      haproxy.failNext(step, new Error('SIGKILL'));
      await expect(bring('10.0.0.1', '10.0.0.3')).rejects.toThrow('SIGKILL');
      await bring(...next);
      const memory = haproxy.memory?.map(({ name, endpoint: { host } }) => `${name} ${host} 6443 ready checked`).join('\n');
      expect(haproxy.dump()).toBe(memory);
      const dump = haproxy.dump();
      haproxy.load();
      expect(haproxy.dump()).toBe(dump);
      if (next.length > 0) expect(dump).toBe(`${one}\napi-3 10.0.0.3 6443 ready checked`);
    }
  },
);

test('killed between any two changes of the runtime API, the next process makes the rest', async () => {
  for (let survived = 0; survived < 4; survived++) {
    const { haproxy, units, bring, keep } = machine();
    await bring('10.0.0.1', '10.0.0.2');
    const dying = new AbortController();
    const change = haproxy.change.bind(haproxy);
    let done = 0;
    haproxy.change = async (step, given) => {
      if (done++ === survived) dying.abort(new Error('SIGKILL'));
      dying.signal.throwIfAborted();
      await change(step, given);
    };
    const last = new BalancerKeeper({
      ...{ config: haproxy, runtime: haproxy, units, settings, sha256, clock: new FakeClock(), logger: new FakeLogger() },
    });
    const list = ['10.0.0.1', '10.0.0.3'].map(endpoint);
    await expect(last.bring(list, { signal: dying.signal })).rejects.toThrow('SIGKILL');
    haproxy.change = change;
    await keep();
    expect(haproxy.dump()).toBe(`${one}\napi-3 10.0.0.3 6443 ready checked`);
    expect(units.reloads).toEqual([]);
  }
});
