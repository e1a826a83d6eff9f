import { afterEach, describe, expect, test } from 'vitest';
import { MemoryOutbox } from '../../../src/adapters/outbox/memory-outbox.js';
import { MOST_AT_ONCE } from '../../../src/app/dataplane/health-checks.js';
import { HealthSubsystem } from '../../../src/app/dataplane/health-subsystem.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { canonicalJson } from '../../../src/domain/kernel/canonical-json.js';
import { logKey, type Proposal } from '../../../src/domain/log/model.js';
import { ZERO_SEQUENCE } from '../../../src/domain/outbox/model.js';
import { type Resource, refOf, resourceKey } from '../../../src/domain/resource/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeHealthProber } from '../../fakes/fake-health-prober.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { service } from '../../support/small-cluster.js';

const signal = new AbortController().signal;
const here = 'here' as NodeName;
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

class CountingLog extends FakeOrderedLog {
  readonly proposals: Proposal[] = [];

  override propose(...args: Parameters<FakeOrderedLog['propose']>): ReturnType<FakeOrderedLog['propose']> {
    this.proposals.push(args[0]);
    return super.propose(...args);
  }
}

/** A node that follows a log, with its checks begun; `random` in the middle, so that intervals are exact. */
async function rig({
  alone = true,
  log,
  clock = new FakeClock(),
}: {
  alone?: boolean;
  log?: CountingLog;
  clock?: FakeClock;
} = {}) {
  const logger = new FakeLogger();
  const theLog = log ?? new CountingLog({ clock });
  const prober = new FakeHealthProber();
  const outbox = new MemoryOutbox(1_000);
  const view = new LogConsumer(theLog, clock, logger);
  const host = { nodeId: here, alone };
  const health = new HealthSubsystem({ host, log: theLog, view, prober, clock, random: () => 0.5, logger, outbox });
  await view.start();
  await clock.advance(0);
  await health.start();
  stops.push(
    () => health.stop(),
    () => view.stop(),
  );
  const put = (...resources: readonly Resource[]) => {
    const changes = resources.map((each) => ({
      key: resourceKey(refOf(each)),
      value: canonicalJson({ ...each, source: 'test' }),
    }));
    return theLog.propose({ changes, preconditions: [] }, { signal });
  };
  const verdicts = () =>
    theLog
      .dump()
      .split('\n')
      .filter((line) => line.startsWith('health/'))
      .map((line) => line.replace(/ @ \d+$/, '').replace('health/default/a/', ''));
  const events = async () => (await outbox.read(ZERO_SEQUENCE, 1_000, { signal })).map(({ message }) => message);
  return { clock, log: theLog, logger, prober, health, view, put, verdicts, events };
}

const unhealthy = (since: number, reason = 'connection refused') =>
  `{"healthy":false,"node":"here","reason":"${reason}","since":${since}}`;
const checked = (spec: object = {}) =>
  service('a', { endpoints: [{ address: '10.0.0.1' }, { address: '10.0.0.2' }], health: { tcp: {} }, ...spec });

describe('from check to log', () => {
  test('a first verdict, a fall after three failures, a rise after two successes, each told once', async () => {
    const { clock, prober, put, verdicts, events } = await rig();
    await put(checked());
    await clock.advance(1_000);
    expect(verdicts()).toEqual([expect.stringMatching(/^10.0.0.1:80 = {"healthy":true/), expect.stringMatching(/^10.0.0.2:80/)]);
    prober.fail('10.0.0.1:80');
    await clock.advance(29_000);
    expect(verdicts()[0]).toContain('"healthy":true');
    await clock.advance(2_000);
    expect(verdicts()[0]).toMatch(/^10.0.0.1:80 = {"healthy":false,"node":"here","reason":"connection refused","since":\d+}$/);
    prober.heal('10.0.0.1:80');
    await clock.advance(10_000);
    expect(verdicts()[0]).toContain('"healthy":false');
    await clock.advance(10_000);
    expect(verdicts()[0]).toContain('"healthy":true');
    expect(await events()).toEqual([
      'endpoint 10.0.0.1:80 is unhealthy: connection refused',
      'endpoint 10.0.0.1:80 is healthy again',
    ]);
  });

  test('what turns within a tick is one proposal, and nothing is proposed while nothing turns', async () => {
    const { clock, log, put, prober } = await rig();
    const endpoints = Array.from({ length: 50 }, (_, index) => ({ address: `10.0.0.${index}` }));
    await put(checked({ endpoints, health: { tcp: {}, fall: 1 } }));
    await clock.advance(5_000);
    expect(
      log.proposals
        .slice(1)
        .map(({ changes }) => changes.length)
        .reduce((sum, count) => sum + count, 0),
    ).toBe(50);
    const before = log.proposals.length;
    for (const { address } of endpoints) prober.fail(`${address}:80`);
    await clock.advance(12_000);
    const made = log.proposals.slice(before).map(({ changes }) => changes.length);
    expect(made.reduce((sum, count) => sum + count, 0)).toBe(50);
    expect(made.length).toBeLessThanOrEqual(3);
    await clock.advance(60_000);
    expect(log.proposals.length).toBe(before + made.length);
  });

  test('a check that gets no answer has failed when its time is over', async () => {
    const { clock, prober, put, verdicts } = await rig();
    prober.silence('10.0.0.1:80');
    await put(checked({ health: { tcp: {}, interval: '3s', timeout: '1500ms', fall: 1 } }));
    await clock.advance(1_000);
    expect(prober.underWay).toBe(1);
    await clock.advance(1_000);
    expect(verdicts()[0]).toMatch(/"reason":"no answer within 1500ms"/);
    expect(prober.underWay).toBe(0);
  });

  test('a flapping endpoint is held, and the log is spared', async () => {
    const { clock, log, prober, put, verdicts, events } = await rig();
    await put(checked({ endpoints: [{ address: '10.0.0.1' }], health: { tcp: {}, interval: '1s', rise: 1, fall: 1 } }));
    await clock.advance(500);
    const before = log.proposals.length;
    for (let turn = 0; turn < 30; turn++) {
      if (turn % 2 === 0) prober.fail('10.0.0.1:80');
      else prober.heal('10.0.0.1:80');
      await clock.advance(1_000);
    }
    expect(verdicts()).toEqual([expect.stringContaining('"reason":"flapping, not ready"')]);
    expect(log.proposals.length - before).toBe(5);
    await clock.advance(62_000);
    expect(verdicts()).toEqual([expect.stringContaining('"healthy":true')]);
    expect((await events()).slice(-2)).toEqual([
      'endpoint 10.0.0.1:80 flaps and is held as not ready until it is calm',
      'endpoint 10.0.0.1:80 is healthy again',
    ]);
  });
});

describe('whose endpoints', () => {
  test("this node's, and of no node only where it is alone", async () => {
    const endpoints = [{ address: '10.0.0.1', node: 'here' }, { address: '10.0.0.2', node: 'there' }, { address: '10.0.0.3' }];
    for (const [alone, asked] of [
      [true, ['10.0.0.1:80', '10.0.0.3:80']],
      [false, ['10.0.0.1:80']],
    ] as const) {
      const { clock, prober, put } = await rig({ alone });
      await put(checked({ endpoints }));
      await clock.advance(1_000);
      expect(prober.taken()).toEqual(asked);
    }
  });

  test('verdicts go with their endpoint, their check, their service', async () => {
    const { clock, log, put, verdicts, prober } = await rig();
    await put(checked());
    await clock.advance(1_000);
    expect(verdicts()).toHaveLength(2);
    await put(checked({ endpoints: [{ address: '10.0.0.2' }] }));
    await clock.advance(1_000);
    expect(verdicts()).toEqual([expect.stringMatching(/^10.0.0.2:80 = /)]);
    await put(checked({ health: undefined }));
    await clock.advance(1_000);
    expect(verdicts()).toEqual([]);
    await put(checked());
    await clock.advance(1_000);
    expect(verdicts()).toHaveLength(2);
    await log.propose({ changes: [{ key: logKey('service/default/a'), value: null }], preconditions: [] }, { signal });
    prober.taken();
    await clock.advance(60_000);
    expect([verdicts(), prober.taken()]).toEqual([[], []]);
  });

  test('what was left behind by another start is taken back, what another node wrote is not', async () => {
    for (const alone of [true, false]) {
      const { clock, log, put, verdicts } = await rig({ alone });
      const left = [
        { key: logKey('health/default/gone/10.0.0.9:80'), value: unhealthy(1) },
        { key: logKey('health/default/a/10.0.0.9:80'), value: unhealthy(1).replace('here', 'there') },
      ];
      await log.propose({ changes: left, preconditions: [] }, { signal });
      await put(checked({ endpoints: [] }));
      await clock.advance(31_000);
      expect(verdicts()).toEqual(alone ? [] : [`10.0.0.9:80 = ${left[1]?.value}`]);
    }
  });

  test('a restart goes on with what the log says', async () => {
    const clock = new FakeClock();
    const log = new CountingLog({ clock });
    const first = await rig({ log, clock });
    first.prober.fail('10.0.0.1:80');
    await first.put(checked({ health: { tcp: {}, fall: 1 } }));
    await clock.advance(1_000);
    await first.health.stop();
    const before = log.dump();
    const second = await rig({ log, clock });
    await clock.advance(5_000);
    expect(log.dump()).toBe(before);
    await clock.advance(10_000);
    expect(second.verdicts()[0]).toContain('"healthy":true');
    expect(await second.events()).toEqual(['endpoint 10.0.0.1:80 is healthy again']);
  });

  test('a changed check is made anew, and what was found stays until it says otherwise', async () => {
    const { clock, prober, put, verdicts } = await rig();
    prober.fail('10.0.0.1:80');
    await put(checked({ health: { tcp: {}, fall: 1 } }));
    await clock.advance(1_000);
    prober.taken();
    await put(checked({ health: { http: { path: '/' }, fall: 1, rise: 1 } }));
    prober.heal('10.0.0.1:80');
    expect(verdicts()[0]).toContain('"healthy":false');
    await clock.advance(500);
    expect(prober.taken()).toEqual(['10.0.0.1:80', '10.0.0.2:80']);
    expect(verdicts()[0]).toContain('"healthy":true');
  });
});

describe('ten thousand endpoints', () => {
  const services = Array.from({ length: 20 }, (_, index) =>
    service(`s${index}`, {
      health: { tcp: {} },
      endpoints: Array.from({ length: 500 }, (_, host) => ({ address: `10.${index}.${host >> 8}.${host & 255}` })),
    }),
  );

  test('are asked once in an interval, a thousand a second, and written in a proposal a tick', async () => {
    const { clock, log, prober, put } = await rig();
    await put(...services);
    const asked: number[] = [];
    for (let second = 0; second < 12; second++) {
      await clock.advance(1_000);
      asked.push(prober.taken().length);
    }
    expect(asked.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(11_000);
    expect(Math.max(...asked)).toBeLessThanOrEqual(1_200);
    expect(Math.min(...asked.slice(0, 9))).toBeGreaterThan(800);
    expect(log.proposals.length).toBeLessThanOrEqual(12 * 10 + 1);
    expect(prober.mostUnderWay).toBeLessThanOrEqual(MOST_AT_ONCE);
  }, 30_000);

  test('none of which answers come later, a bounded number at once, and none is left out', async () => {
    const { clock, prober, put, health } = await rig();
    const some = services.slice(0, 2);
    for (const each of some) {
      if (each.kind === 'Service') for (const { address } of each.spec.endpoints) prober.silence(`${address}:80`);
    }
    await put(...some);
    await clock.advance(9_000);
    expect(prober.mostUnderWay).toBe(MOST_AT_ONCE);
    expect(new Set(prober.taken()).size).toBe(1_000);
    expect(health.counts().targets).toBe(1_000);
  }, 30_000);
});

describe('room', () => {
  test('that services leave which are gone is taken by others', async () => {
    const { clock, log, prober, put } = await rig();
    const endpoints = Array.from({ length: MOST_AT_ONCE }, (_, index) => ({ address: `10.0.${index}.1` }));
    for (const { address } of endpoints) prober.silence(`${address}:80`);
    const slow = { tcp: {}, interval: '30s', timeout: '10s' };
    await put(checked({ endpoints, health: slow }), service('b', { endpoints: [{ address: '10.9.9.9' }], health: slow }));
    await clock.advance(2_000);
    expect(prober.underWay).toBe(MOST_AT_ONCE);
    await log.propose({ changes: [{ key: logKey('service/default/a'), value: null }], preconditions: [] }, { signal });
    await clock.advance(1_000);
    prober.taken();
    await clock.advance(40_000);
    expect(new Set(prober.taken())).toEqual(new Set(['10.9.9.9:80']));
  });

  test('checks that a stop gave up are made after the next start', async () => {
    const { clock, prober, put, health } = await rig();
    prober.silence('10.0.0.1:80');
    await put(checked());
    await clock.advance(500);
    await health.stop();
    prober.taken();
    await health.start();
    await clock.advance(11_000);
    expect(new Set(prober.taken())).toEqual(new Set(['10.0.0.1:80', '10.0.0.2:80']));
  });
});

describe('when things go wrong', () => {
  test('a log that takes nothing is tried again, and status says so meanwhile', async () => {
    const { clock, log, put, verdicts, health } = await rig();
    await put(checked());
    log.failNext();
    await clock.advance(500);
    expect(health.problems()).toEqual([
      {
        subject: 'health',
        reason: 'what checks found could not be written to the log: log.not_written: told to fail',
        since: expect.any(Number),
        remedy: 'it is tried again by itself; see the log of the daemon',
      },
    ]);
    expect(verdicts()).toEqual([]);
    await clock.advance(2_000);
    expect(verdicts()).toHaveLength(2);
    expect(health.problems()).toEqual([]);
  });

  test('a verdict that somebody else wrote over is written again', async () => {
    const { clock, log, put, verdicts } = await rig();
    await put(checked());
    await clock.advance(1_000);
    const right = verdicts();
    const wrong = { key: logKey('health/default/a/10.0.0.1:80'), value: unhealthy(1) };
    await log.propose({ changes: [wrong], preconditions: [] }, { signal });
    await clock.advance(1_000);
    expect(verdicts()).toEqual(right);
  });

  test('a deadline that is told late, as this process slept, says nothing of the endpoint', async () => {
    class Sleepy extends FakeClock {
      offset = 0;
      override monotonic(): number {
        return super.monotonic() + this.offset;
      }
    }
    const clock = new Sleepy();
    const { prober, put, verdicts } = await rig({ clock });
    prober.silence('10.0.0.1:80');
    await put(checked({ endpoints: [{ address: '10.0.0.1' }], health: { tcp: {}, fall: 1 } }));
    await clock.advance(500);
    clock.offset = 3_000;
    await clock.advance(2_000);
    expect([prober.underWay, verdicts()]).toEqual([0, []]);
  });

  test('problems name what is unhealthy, and the whole service when all of it is', async () => {
    const { clock, prober, put, health } = await rig();
    prober.fail('10.0.0.1:80');
    await put(checked({ health: { tcp: {}, fall: 1 } }));
    await clock.advance(1_000);
    expect(health.problems()).toEqual([
      {
        subject: 'service default/a',
        reason: '1 of 2 endpoints is unhealthy: 10.0.0.1:80 (connection refused)',
        since: expect.any(Number),
        remedy: 'mend what the checks have found; `holdfast explain service a -n default` shows where connections go',
      },
    ]);
  });

  test('stop gives up what is under way, and begins nothing more', async () => {
    const { clock, prober, put, health } = await rig();
    prober.silence('10.0.0.1:80');
    await put(checked());
    await clock.advance(500);
    expect(prober.underWay).toBe(1);
    await health.stop();
    await health.stop();
    prober.taken();
    await clock.advance(60_000);
    expect([prober.underWay, prober.taken()]).toEqual([0, []]);
  });
});
