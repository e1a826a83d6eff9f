import { describe, expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { Agent, type AgentConfig } from '../../../src/app/agent/agent.js';
import { mintIdentity } from '../../../src/domain/identity/plan.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';
import type { OrderedLog } from '../../../src/ports/log/ordered-log.js';
import type { Outbox } from '../../../src/ports/outbox/outbox.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeSubsystem } from '../../fakes/fake-subsystem.js';

const identity = mintIdentity({ explicitName: 'node-a', hostname: 'host', labels: {}, randomBytes: new Uint8Array(8) });
const { signal } = new AbortController();

/** The agent hands it on and never calls it. */
const orderedLog: OrderedLog = {
  propose: () => Promise.reject(new Error('unused')),
  snapshot: () => Promise.reject(new Error('unused')),
  head: () => Promise.reject(new Error('unused')),
  watch: () => {
    throw new Error('unused');
  },
};

function setUp(config: Partial<AgentConfig> = {}, names: readonly string[] = ['a', 'b', 'c']) {
  const clock = new FakeClock(1_000_000);
  const logger = new FakeLogger();
  const journal: string[] = [];
  const outbox = (capacity: number): Outbox => new MemoryOutbox(capacity);
  const agent = new Agent({ identity, orderedLog, logger, clock, outbox, ...config });
  const subsystems = new Map(names.map((name) => [name, new FakeSubsystem(name, journal)]));
  for (const subsystem of subsystems.values()) agent.register(subsystem);
  const part = (name: string) => subsystems.get(name) ?? new FakeSubsystem(name);
  const phases = () => agent.states().map(({ name, phase }) => `${name} ${phase}`);
  const events = async () => (await agent.outbox().read(ZERO_SEQUENCE, 100, { signal })).map(({ message }) => message);
  return { agent, clock, journal, logger, part, phases, events };
}

/** A promise's outcome, asked for before it has one. */
function outcome(promise: Promise<unknown>): { value: string } {
  const result = { value: 'pending' };
  promise.then(
    () => {
      result.value = 'resolved';
    },
    (error: unknown) => {
      result.value = error instanceof AgentError ? error.code : String(error);
    },
  );
  return result;
}

describe('what it is made from', () => {
  test('has its defaults', () => {
    const { agent } = setUp();
    expect(agent.identity()).toBe(identity);
    expect(agent.orderedLog()).toBe(orderedLog);
    expect(agent.mode()).toBe('production');
    expect(agent.outbox().stats().capacity).toBe(4096);
    expect(agent.readyError()).toBeUndefined();
  });

  test('can be said', () => {
    const { agent } = setUp({ mode: 'dev', outboxCapacity: 7 });
    expect(agent.mode()).toBe('dev');
    expect(agent.outbox().stats().capacity).toBe(7);
  });

  test.each<{ missing: readonly (keyof AgentConfig)[]; message: string }>([
    { missing: ['identity'], message: 'agent.incomplete: missing: identity' },
    { missing: ['orderedLog'], message: 'agent.incomplete: missing: orderedLog' },
    { missing: ['identity', 'orderedLog', 'clock'], message: 'agent.incomplete: missing: identity, orderedLog, clock' },
  ])('$missing missing is an error', ({ missing, message }) => {
    const config = Object.fromEntries(missing.map((part) => [part, undefined]));
    expect(() => setUp(config)).toThrow(message);
  });
});

describe('register', () => {
  test.each<{ name: string; subsystem: unknown; code: string }>([
    { name: 'null', subsystem: null, code: 'agent.invalid_subsystem' },
    { name: 'undefined', subsystem: undefined, code: 'agent.invalid_subsystem' },
    { name: 'one without a name', subsystem: { name: '' }, code: 'agent.invalid_subsystem' },
    { name: 'a duplicate', subsystem: new FakeSubsystem('a'), code: 'agent.duplicate_subsystem' },
  ])('$name is refused', ({ subsystem, code }) => {
    const register: (subsystem: unknown) => void = (each) => Reflect.apply(agent.register, agent, [each]);
    const { agent, phases } = setUp();
    expect(() => register(subsystem)).toThrow(expect.objectContaining({ code }));
    expect(phases()).toEqual(['a registered', 'b registered', 'c registered']);
  });

  test('is too late once the start has begun, and after the stop', async () => {
    const { agent } = setUp();
    const late = () => agent.register(new FakeSubsystem('late'));
    const started = agent.start();
    expect(late).toThrow(expect.objectContaining({ code: 'agent.late_registration' }));
    await started;
    expect(late).toThrow(expect.objectContaining({ code: 'agent.late_registration' }));
    await agent.stop();
    expect(late).toThrow(expect.objectContaining({ code: 'agent.late_registration' }));
  });
});

describe('start', () => {
  test('starts in order, then is ready', async () => {
    const { agent, journal, phases, events } = setUp();
    await agent.start();
    await agent.ready();
    expect(journal).toEqual(['start a', 'start b', 'start c']);
    expect(phases()).toEqual(['a ready', 'b ready', 'c ready']);
    expect(agent.readyError()).toBeUndefined();
    expect(await events()).toEqual(['agent started', 'agent ready']);
  });

  test('without subsystems it is ready at once', async () => {
    const { agent } = setUp({}, []);
    await agent.start();
    await agent.ready();
    expect(agent.readyError()).toBeUndefined();
    expect(await agent.stop()).toEqual([]);
  });

  test('one after the other, each with its own time', async () => {
    const { agent, clock, journal, part, phases } = setUp();
    for (const name of ['a', 'b', 'c']) part(name).will('start', 'hang');
    const started = outcome(agent.start());
    await clock.advance(9_999);
    expect(phases()).toEqual(['a starting', 'b registered', 'c registered']);
    part('a').finish('start');
    await clock.advance(9_999);
    part('b').finish('start');
    await clock.advance(9_999);
    part('c').finish('start');
    await clock.advance(0);
    expect(started.value).toBe('resolved');
    expect(journal).toEqual(['start a', 'start of a went on', 'start b', 'start of b went on', 'start c', 'start of c went on']);
  });

  test('a failure stops it and the started ones in reverse, and names it', async () => {
    const { agent, journal, part, phases, events } = setUp();
    const cause = new Error('no address');
    part('b').will('start', cause);
    const failure = await agent.start().catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 'agent.start_failed',
      message: 'agent.start_failed: b did not start: no address',
      facts: { subsystem: 'b' },
      cause,
    });
    expect(journal).toEqual(['start a', 'start b', 'stop b', 'stop a']);
    expect(phases()).toEqual(['a stopped', 'b failed', 'c registered']);
    expect(agent.states()[1]).toEqual({ name: 'b', phase: 'failed', since: 1_000_000, reason: 'did not start: no address' });
    await agent.ready();
    expect(agent.readyError()).toBe(failure);
    expect(await events()).toEqual([]);
  });

  test.each<'hang' | 'hang for ever'>(['hang', 'hang for ever'])('a start that does %s has 10 s', async (behaviour) => {
    const { agent, clock, journal, part } = setUp();
    part('b').will('start', behaviour);
    const started = agent.start().catch((error: unknown) => error);
    await clock.advance(9_999);
    expect(journal).toEqual(['start a', 'start b']);
    await clock.advance(1);
    expect(await started).toMatchObject({
      code: 'agent.start_failed',
      facts: { subsystem: 'b' },
      cause: { code: 'agent.timed_out', facts: { problem: 'the start of b did not finish within 10000 ms' } },
    });
    expect(journal.filter((line) => line.startsWith('stop'))).toEqual(['stop b', 'stop a']);
  });

  test('a stop that fails while a failed start is undone does not stop the rest, nor hide why', async () => {
    const { agent, journal, part, phases } = setUp();
    part('b').will('stop', new Error('stuck'));
    part('c').will('start', new Error('no address'));
    await expect(agent.start()).rejects.toMatchObject({ code: 'agent.start_failed', facts: { subsystem: 'c' } });
    expect(journal).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a']);
    expect(phases()).toEqual(['a stopped', 'b failed', 'c failed']);
  });

  test('after a failed one a new one is allowed, after a good one it is not', async () => {
    const { agent, journal, part, phases } = setUp();
    part('c').will('start', new Error('no address'));
    await expect(agent.start()).rejects.toThrow();
    part('c').will('start', 'ok');
    journal.length = 0;
    await agent.start();
    await agent.ready();
    expect(agent.readyError()).toBeUndefined();
    expect(journal).toEqual(['start a', 'start b', 'start c']);
    expect(phases()).toEqual(['a ready', 'b ready', 'c ready']);
    await expect(agent.start()).rejects.toMatchObject({ code: 'agent.already_started' });
    await agent.stop();
    await expect(agent.start()).rejects.toMatchObject({ code: 'agent.already_started' });
  });

  test('a second one while the first goes on is an error and disturbs nothing', async () => {
    const { agent, journal } = setUp();
    const first = agent.start();
    await expect(agent.start()).rejects.toMatchObject({ code: 'agent.already_started' });
    await first;
    expect(journal).toEqual(['start a', 'start b', 'start c']);
  });
});

describe('ready', () => {
  test('is not there yet when everything has only started', async () => {
    const { agent, clock, part, phases } = setUp();
    part('b').will('ready', 'hang');
    await agent.start();
    const ready = outcome(agent.ready());
    await clock.advance(29_999);
    expect(ready.value).toBe('pending');
    expect(phases()).toEqual(['a ready', 'b started', 'c ready']);
    part('b').finish('ready');
    await clock.advance(0);
    expect(ready.value).toBe('resolved');
    expect(agent.readyError()).toBeUndefined();
  });

  test('may be waited for before the start', async () => {
    const { agent } = setUp();
    const ready = agent.ready();
    await agent.start();
    await ready;
  });

  test('when the time is over it resolves, names what is pending, and everything runs on', async () => {
    const { agent, clock, journal, part, phases, events } = setUp({ readyTimeoutMs: 5_000 });
    part('a').will('ready', 'hang');
    part('c').will('ready', 'hang for ever');
    await agent.start();
    await clock.advance(5_000);
    await agent.ready();
    expect(agent.readyError()).toMatchObject({
      code: 'agent.not_ready',
      message: 'agent.not_ready: not ready within 5000 ms: a, c',
    });
    expect(agent.states()).toEqual([
      { name: 'a', phase: 'started', since: 1_000_000, reason: 'not ready within 5000 ms' },
      { name: 'b', phase: 'ready', since: 1_000_000 },
      { name: 'c', phase: 'started', since: 1_000_000, reason: 'not ready within 5000 ms' },
    ]);
    part('a').finish('ready');
    await clock.advance(1_000);
    expect(agent.states()[0]).toEqual({ name: 'a', phase: 'ready', since: 1_005_000 });
    expect(phases()).toEqual(['a ready', 'b ready', 'c started']);
    expect(journal.filter((line) => line.startsWith('stop'))).toEqual([]);
    expect(await events()).toEqual(['agent started', 'agent.not_ready: not ready within 5000 ms: a, c']);
  });

  test('a failure only sets readyError, and the others are waited for', async () => {
    const { agent, clock, part, phases } = setUp();
    const cause = new Error('no control plane');
    part('a').will('ready', cause);
    part('b').will('ready', 'hang');
    await agent.start();
    const ready = outcome(agent.ready());
    await clock.advance(100);
    expect(ready.value).toBe('pending');
    part('b').finish('ready');
    await clock.advance(0);
    expect(ready.value).toBe('resolved');
    expect(agent.readyError()).toMatchObject({
      message: 'agent.not_ready: a is not ready: no control plane',
      cause,
    });
    expect(phases()).toEqual(['a failed', 'b ready', 'c ready']);
  });

  test('failed and pending ones are named together', async () => {
    const { agent, clock, part } = setUp();
    part('a').will('ready', new Error('boom'));
    part('b').will('ready', 'hang');
    await agent.start();
    await clock.advance(30_000);
    expect(agent.readyError()?.message).toBe('agent.not_ready: a is not ready: boom; not ready within 30000 ms: b');
  });

  test('a stop settles it', async () => {
    const { agent, part } = setUp();
    part('b').will('ready', 'hang for ever');
    await agent.start();
    await agent.stop();
    await agent.ready();
    expect(agent.readyError()).toMatchObject({ code: 'agent.stopped' });
  });
});

describe('stop', () => {
  test('before the start it does nothing, and the start is still allowed', async () => {
    const { agent, journal } = setUp();
    expect(await agent.stop()).toEqual([]);
    await agent.start();
    expect(journal).toEqual(['start a', 'start b', 'start c']);
  });

  test('is in reverse, once, however often it is called', async () => {
    const { agent, journal, phases, events } = setUp();
    await agent.start();
    await agent.ready();
    expect(await Promise.all([agent.stop(), agent.stop()])).toEqual([[], []]);
    expect(await agent.stop()).toEqual([]);
    expect(journal.slice(3)).toEqual(['stop c', 'stop b', 'stop a']);
    expect(phases()).toEqual(['a stopped', 'b stopped', 'c stopped']);
    expect(await events()).toEqual(['agent started', 'agent ready', 'agent stops']);
  });

  test('a throwing and a hanging one do not stop the rest, and are told', async () => {
    const { agent, clock, journal, part, phases, events } = setUp();
    const error = new Error('stuck');
    part('c').will('stop', error);
    part('b').will('stop', 'hang for ever');
    await agent.start();
    const stopped = agent.stop();
    await clock.advance(9_999);
    expect(journal.slice(3)).toEqual(['stop c', 'stop b']);
    await clock.advance(1);
    expect(await stopped).toEqual([
      { name: 'c', error },
      { name: 'b', error: expect.objectContaining({ code: 'agent.timed_out' }) },
    ]);
    expect(journal.slice(3)).toEqual(['stop c', 'stop b', 'stop a']);
    expect(phases()).toEqual(['a stopped', 'b failed', 'c failed']);
    expect((await events()).slice(-2)).toEqual([
      'c did not stop: stuck',
      'b did not stop: agent.timed_out: the stop of b did not finish within 10000 ms',
    ]);
  });

  test('a subsystem may have a budget of its own', async () => {
    const { agent, clock, journal } = setUp({}, ['a']);
    agent.register(new FakeSubsystem('ingress', journal, { stopBudgetMs: 30_000 }).will('stop', 'hang for ever'));
    await agent.start();
    const stopped = agent.stop();
    await clock.advance(29_999);
    expect(journal.at(-1)).toBe('stop ingress');
    await clock.advance(1);
    expect(await stopped).toMatchObject([{ name: 'ingress' }]);
    expect(journal.at(-1)).toBe('stop a');
  });

  test('the outbox is flushed last, and a flush that hangs has 10 s', async () => {
    const journal: string[] = [];
    class HangingOutbox extends MemoryOutbox {
      override flush(): Promise<void> {
        journal.push('flush');
        return new Promise(() => {});
      }
    }
    const { agent, clock } = setUp({ outbox: () => new HangingOutbox() }, []);
    agent.register(new FakeSubsystem('forwarder', journal));
    await agent.start();
    const stopped = agent.stop();
    await clock.advance(10_000);
    expect(await stopped).toMatchObject([{ name: 'outbox', error: { code: 'agent.timed_out' } }]);
    expect(journal).toEqual(['start forwarder', 'stop forwarder', 'flush']);
  });

  test('during the start it ends that, undoes it, and waits until it is undone', async () => {
    const { agent, clock, journal, part, phases } = setUp();
    part('b').will('start', 'hang');
    const started = outcome(agent.start());
    await clock.advance(100);
    expect(await agent.stop()).toEqual([]);
    expect(started.value).toBe('agent.stopped');
    expect(journal).toEqual(['start a', 'start b', 'stop b', 'stop a']);
    expect(phases()).toEqual(['a stopped', 'b stopped', 'c registered']);
    await agent.ready();
    expect(agent.readyError()).toMatchObject({ code: 'agent.stopped' });
    await expect(agent.start()).rejects.toMatchObject({ code: 'agent.already_started' });
  });

  test('during a start that does not heed its signal it waits for it, within its budget', async () => {
    const { agent, clock, journal, part } = setUp();
    part('b').will('start', 'hang for ever');
    const started = outcome(agent.start());
    await clock.advance(4_000);
    const stopped = outcome(agent.stop());
    await clock.advance(1_000);
    expect(stopped.value).toBe('pending');
    part('b').finish('start');
    await clock.advance(0);
    expect([started.value, stopped.value]).toEqual(['agent.stopped', 'resolved']);
    expect(journal).toEqual(['start a', 'start b', 'start of b went on', 'stop b', 'stop a']);
  });

  test('at any moment of the start it leaves nothing running', async () => {
    for (let turns = 0; turns < 40; turns++) {
      const { agent, journal } = setUp();
      const started = outcome(agent.start());
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      await agent.stop();
      expect(['resolved', 'agent.stopped']).toContain(started.value);
      const touched = journal.filter((line) => line.startsWith('start')).map((line) => line.slice(6));
      const undone = journal.filter((line) => line.startsWith('stop')).map((line) => line.slice(5));
      expect(undone).toEqual(touched.toReversed());
    }
  });

  test('after a failed start there is nothing left to do', async () => {
    const { agent, journal, part } = setUp();
    part('a').will('start', new Error('boom'));
    await expect(agent.start()).rejects.toThrow();
    expect(await agent.stop()).toEqual([]);
    expect(journal).toEqual(['start a', 'stop a']);
  });

  test('while a failed start is undone it waits for that, and the failure is told as it was', async () => {
    const { agent, clock, part } = setUp();
    part('b').will('start', new Error('boom')).will('stop', 'hang for ever');
    const started = outcome(agent.start());
    await clock.advance(1);
    const stopped = agent.stop();
    await clock.advance(10_000);
    expect(await stopped).toMatchObject([{ name: 'b' }]);
    expect(started.value).toBe('agent.start_failed');
  });
});

test('an outbox that takes nothing is logged, and stops nothing', async () => {
  class FullOutbox extends MemoryOutbox {
    override append(): Promise<never> {
      return Promise.reject(new Error('full'));
    }
  }
  const { agent, clock, logger } = setUp({ outbox: () => new FullOutbox() });
  await agent.start();
  await clock.advance(0);
  expect(logger.dump('warn')).toBe('warn an event was not taken by the outbox\nwarn an event was not taken by the outbox');
  expect(await agent.stop()).toEqual([]);
});
