import { describe, expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { Agent } from '../../../src/app/agent/agent.js';
import { NodeOperations } from '../../../src/app/node/node-operations.js';
import { mintIdentity } from '../../../src/domain/identity/plan.js';
import type { NodeEvent, StatusProblem } from '../../../src/ports/driving/operations.js';
import { FakeDataPlane } from '../../fakes/fake-data-plane.js';
import { FakeSubsystem } from '../../fakes/fake-subsystem.js';
import { endpoint, listener } from '../../support/listeners.js';
import { applyCall, options, resourceRig, serviceDocument, take } from '../../support/resource-rig.js';

async function setUp({ outbox = new MemoryOutbox(), following = true } = {}) {
  const rig = await resourceRig({ following });
  const identity = mintIdentity({ explicitName: 'n1', hostname: 'host', labels: {}, randomBytes: new Uint8Array(8) });
  const { clock, logger, view, listeners, log } = rig;
  const agent = new Agent({ identity, orderedLog: log, mode: 'dev', logger, outbox: () => outbox, readyTimeoutMs: 1_000, clock });
  const slow = new FakeSubsystem('slow').will('ready', 'hang');
  agent.register(new FakeSubsystem('quick'));
  agent.register(slow);
  const dataPlane = new FakeDataPlane();
  const problems: StatusProblem[] = [];
  const operations = new NodeOperations({
    agent,
    view,
    listeners,
    dataPlane,
    clock,
    sources: [{ problems: () => problems }],
    version: '1.2.3',
    dataDir: '/data',
    startedAt: clock.now(),
    metricsListen: () => '127.0.0.1:9193',
  });
  return { ...rig, agent, slow, dataPlane, problems, operations, outbox };
}

describe('status', () => {
  test('says what this node is and does', async () => {
    const { operations, agent, slow, clock, resources, dataPlane } = await setUp();
    const startedAt = clock.now();
    slow.finish('ready');
    await agent.start();
    dataPlane.start(() => {});
    await dataPlane.apply({ upsert: [listener('default/a/http', [endpoint(1)])], remove: [] }, options);
    await resources.apply(applyCall([serviceDocument('a')]), options);
    await clock.advance(100);
    expect(operations.status()).toEqual({
      version: '1.2.3',
      mode: 'dev',
      nodeId: 'n1',
      hostname: 'host',
      dataDir: '/data',
      startedAt,
      ready: true,
      subsystems: [
        { name: 'quick', state: 'ready', since: startedAt, reason: undefined },
        { name: 'slow', state: 'ready', since: startedAt, reason: undefined },
      ],
      log: { revision: 1n, logId: expect.any(String), objects: 1, ageMs: 100 },
      dataPlane: {
        ...{ threads: 2, listeners: 1, listenerBudget: 12_650, failedListeners: 0 },
        ...{ connections: 0, activeConnections: 0, connectionLimit: 12_650 },
      },
      metricsListen: '127.0.0.1:9193',
      problems: [],
    });
    const [stats] = dataPlane.stats();
    expect(operations.traffic()).toEqual({
      monotonicMs: 100,
      listeners: [{ ...stats, protocol: 'tcp', declaredEndpoints: 0 }],
    });
  });

  test('a subsystem that is late is a problem until it is ready', async () => {
    const { operations, agent, slow, clock } = await setUp();
    await agent.start();
    await clock.advance(500);
    expect([operations.status().ready, operations.status().problems]).toEqual([false, []]);
    await clock.advance(500);
    const late = { subject: 'subsystem slow', reason: 'not ready within 1000 ms', remedy: expect.any(String) };
    expect(operations.status().problems).toEqual([{ ...late, since: clock.now() - 1_000 }]);
    slow.finish('ready');
    await clock.advance(0);
    expect([operations.status().ready, operations.status().problems]).toEqual([true, []]);
  });

  test('a log that cannot be followed is one after 30 s, also if it never could', async () => {
    for (const following of [true, false]) {
      const { operations, view, clock } = await setUp({ following });
      const since = clock.now();
      await view.stop();
      await clock.advance(30_000);
      expect(operations.status()).toMatchObject({ log: { ageMs: 30_000 }, problems: [] });
      await clock.advance(1);
      expect(operations.status().problems).toMatchObject([{ subject: 'log', since }]);
    }
  });

  test('listeners that failed, by service and port, with what to do; after fifty their number', async () => {
    const { operations, listeners } = await setUp();
    const state = { state: 'failed', reason: 'bind: in use', remedy: 'free it', since: 5 } as const;
    listeners.set('prod/web/http', state);
    expect(operations.status().problems).toEqual([
      { subject: 'service prod/web port http', reason: 'cannot listen: bind: in use', remedy: 'free it', since: 5 },
    ]);
    for (let number = 0; number < 100; number++) listeners.set(`default/s${number}/http`, state);
    const { problems, dataPlane } = operations.status();
    expect([problems.length, problems.at(-1)?.reason, dataPlane?.failedListeners]).toEqual([
      51,
      '51 more listeners cannot listen',
      101,
    ]);
  });

  test('what other parts report', async () => {
    const { operations, problems } = await setUp();
    problems.push({ subject: 'metrics', reason: 'taken', remedy: 'free it', since: 1 });
    expect(operations.status().problems).toEqual(problems);
  });
});

describe('events', () => {
  const event = (message: string, labels: Readonly<Record<string, string>> = {}, kind: 'event' | 'log' = 'event') => ({
    time: 1,
    kind,
    stream: 'agent',
    severity: 'info' as const,
    message,
    labels,
  });

  test('those that are kept, without the log lines, and by what they are about', async () => {
    const { operations, outbox } = await setUp();
    await outbox.append(event('one', { subject: 'service a' }), options);
    await outbox.append(event('a line', {}, 'log'), options);
    await outbox.append(event('two', { subsystem: 'slow' }), options);
    await outbox.append(event('three'), options);
    const seen: NodeEvent[] = [];
    for await (const each of operations.events(false, options)) seen.push(each);
    expect(seen).toEqual([
      { sequence: 1n, time: 1, severity: 'info', subject: 'service a', message: 'one' },
      { sequence: 3n, time: 1, severity: 'info', subject: 'slow', message: 'two' },
      { sequence: 4n, time: 1, severity: 'info', subject: 'agent', message: 'three' },
    ]);
  });

  test('then every new one, until abort, which is no error', async () => {
    const { operations, outbox } = await setUp();
    for (let number = 0; number < 300; number++) await outbox.append(event(`old ${number}`), options);
    const abort = new AbortController();
    const events = operations.events(true, { signal: abort.signal })[Symbol.asyncIterator]();
    expect((await take(events, 300)).at(-1)?.message).toBe('old 299');
    const next = events.next();
    await outbox.append(event('a line', {}, 'log'), options);
    await outbox.append(event('new'), options);
    expect((await next).value.message).toBe('new');
    const last = events.next();
    abort.abort();
    expect(await last).toEqual({ done: true, value: undefined });
  });

  test('an outbox that fails ends them with its error', async () => {
    class Broken extends MemoryOutbox {
      override async changed(): Promise<void> {
        throw new Error('broken');
      }
    }
    const { operations } = await setUp({ outbox: new Broken() });
    await expect(operations.events(true, options)[Symbol.asyncIterator]().next()).rejects.toThrow('broken');
  });
});
