import { expect, onTestFinished, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import type { BalancerKeeper, BalancerReading } from '../../../src/app/loadbalancer/balancer-keeper.js';
import { BalancerSubsystem } from '../../../src/app/loadbalancer/balancer-subsystem.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { formatHostPort, type HostPort } from '../../../src/domain/kernel/network.js';
import { payloadOf } from '../../../src/domain/link/payload.js';
import { nameServers } from '../../../src/domain/loadbalancer/names.js';
import { ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { endpoint } from '../../support/endpoint.js';
import { FakeSession } from '../../support/instruction-rig.js';

const options = { signal: new AbortController().signal };
const MINUTE = 60_000;

async function rig() {
  const [clock, outbox] = [new FakeClock(), new MemoryOutbox(100)];
  const brought: string[] = [];
  const [asked, answer] = [[] as string[], { type: 'GetControlPlaneNodes', jsonB64: payloadOf(['https://10.0.0.1:6443']) }];
  const next: { failure: Error | undefined; link: Error | undefined; isAbsent: boolean } = {
    ...{ failure: undefined, link: undefined, isAbsent: false },
  };
  let servers = nameServers([], [], []);
  const keeper: Pick<BalancerKeeper, 'bring' | 'counts'> = {
    counts: () => ({ reloads: 1, changes: 2 }),
    bring: async (list: readonly HostPort[] | undefined): Promise<BalancerReading> => {
      brought.push(list === undefined ? 'the last' : list.map(formatHostPort).join(' ') || 'none');
      if (next.failure !== undefined) throw next.failure;
      if (next.isAbsent) return { state: 'absent' };
      if (list !== undefined && list.length > 0) servers = nameServers(list, servers, []);
      const running = { pid: 1, description: 'd', servers: [] };
      return servers.length === 0 ? { state: 'waiting' } : { state: 'serving', servers, running };
    },
  };
  const subsystem = new BalancerSubsystem({
    keeper: keeper as BalancerKeeper,
    ask: async (type, jsonB64) => {
      asked.push(`${type} ${JSON.stringify(jsonB64)}`);
      if (next.link !== undefined) throw next.link;
      return { tag: 't', ...answer };
    },
    ...{ outbox, clock, random: () => 0, logger: new FakeLogger() },
  });
  await subsystem.start();
  onTestFinished(() => subsystem.stop());
  await clock.advance(1_000);
  const connect = async () => {
    const session = new FakeSession();
    subsystem.opened(session);
    await clock.advance(1_000);
    return session;
  };
  const events = async () =>
    (await outbox.read(ZERO_SEQUENCE, 100, options)).map((record) => record.kind === 'event' && record.message);
  return { clock, brought, asked, answer, next, subsystem, connect, events };
}

test('asks at each connect and once a minute; without a link the last list is kept up', async () => {
  const { clock, brought, asked, subsystem, connect, events } = await rig();
  expect([brought, asked]).toEqual([['the last'], []]);
  const session = await connect();
  expect([brought.at(-1), asked]).toEqual(['10.0.0.1:6443', ['GetControlPlaneNodes ""']]);
  expect(subsystem.received()).toBe(false);
  await clock.advance(MINUTE);
  expect(asked).toHaveLength(2);
  subsystem.closed(session);
  await clock.advance(MINUTE);
  expect([brought.at(-1), asked.length]).toEqual(['the last', 2]);
  await expect(subsystem.refresh(options)).rejects.toMatchObject({ code: 'loadbalancer.not_linked' });
  expect(await events()).toEqual(['the API is balanced over 10.0.0.1:6443']);
  expect(subsystem.status()).toEqual({
    ...{ state: 'serving', port: 6_446, reloads: 1, changes: 2 },
    servers: [{ name: 'api-1', endpoint: '10.0.0.1:6443', state: 'unknown', sessions: 0 }],
  });
});

test.each([
  ['an empty list', { jsonB64: payloadOf([]) }],
  ['null', { jsonB64: payloadOf(null) }],
  ['nothing', { type: 'NO_CONTENT', jsonB64: payloadOf({}) }],
])('%s of the control plane is no problem', async (_, said) => {
  const { answer, brought, subsystem, connect } = await rig();
  Object.assign(answer, said);
  await connect();
  expect([brought.at(-1), subsystem.problems(), subsystem.status().state]).toEqual(['none', [], 'waiting']);
});

test.each([
  ['an injection', { jsonB64: payloadOf(['10.0.0.1:1', '10.0.0.2:1\n    server x 10.6.6.6:1']) }, /no endpoint of an API server/],
  ['no JSON', { jsonB64: 'e30' }, /it is no base64/],
  ['an object', { jsonB64: payloadOf({ list: [] }) }, /no list of endpoints/],
  ['an error', { type: 'ERROR', jsonB64: 'what is that?' }, /it answers what is that\?/],
])('%s is refused whole: what is there is kept up, and status says so', async (_, said, reason) => {
  const { clock, answer, brought, subsystem, connect, events } = await rig();
  await connect();
  const good = { ...answer };
  Object.assign(answer, said);
  await clock.advance(MINUTE);
  expect(brought.at(-1)).toBe('the last');
  expect(subsystem.problems()).toEqual([
    expect.objectContaining({ subject: 'loadbalancer', reason: expect.stringMatching(reason), since: expect.any(Number) }),
  ]);
  expect(subsystem.status()).toMatchObject({ state: 'failing', servers: [{ endpoint: '10.0.0.1:6443' }] });
  Object.assign(answer, good);
  await clock.advance(2 * MINUTE);
  expect([subsystem.problems(), subsystem.status().state]).toEqual([[], 'serving']);
  expect((await events()).at(-1)).toBe('the balancer of the API works again');
});

test('what fails is tried again with growing gaps, and told once', async () => {
  const { clock, next, brought, subsystem, connect, events } = await rig();
  next.failure = new AgentError('loadbalancer.not_served', { problem: 'no worker' });
  await connect();
  await clock.advance(5 * MINUTE);
  expect(brought.length).toBeGreaterThan(6);
  expect(subsystem.problems()).toEqual([expect.objectContaining({ reason: expect.stringContaining('no worker') })]);
  await expect(subsystem.refresh(options)).rejects.toThrow('no worker');
  next.failure = undefined;
  expect(await subsystem.refresh(options)).toMatchObject({ state: 'serving' });
  expect(await events()).toEqual([
    expect.stringContaining('no worker'),
    'the API is balanced over 10.0.0.1:6443',
    'the balancer of the API works again',
  ]);
});

test('a control plane that does not answer keeps nothing from being kept up', async () => {
  const { clock, next, brought, subsystem, connect } = await rig();
  await connect();
  next.link = new AgentError('link.timed_out', { problem: 'no answer' });
  await clock.advance(MINUTE);
  expect(brought.at(-1)).toBe('the last');
  expect(subsystem.problems()).toHaveLength(1);
});

test('a machine without HAProxy has no problem, whatever the list', async () => {
  const { answer, next, subsystem, connect } = await rig();
  next.isAbsent = true;
  answer.jsonB64 = payloadOf(['x y']);
  await connect();
  expect([subsystem.problems(), subsystem.status()]).toEqual([
    [],
    { state: 'absent', port: 6_446, reloads: 1, changes: 2, servers: [] },
  ]);
});

test('people and the loop go one after the other', async () => {
  const { brought, subsystem, connect } = await rig();
  await connect();
  const before = brought.length;
  await Promise.all([subsystem.refresh(options), subsystem.refresh(options), subsystem.refresh(options)]);
  expect(brought.length).toBe(before + 3);
  expect(endpoint('10.0.0.1').host).toBe('10.0.0.1');
});
