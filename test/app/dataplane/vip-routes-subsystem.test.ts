import { afterEach, expect, test } from 'vitest';
import { VipRoutesSubsystem } from '../../../src/app/dataplane/vip-routes-subsystem.js';
import { LogConsumer } from '../../../src/app/log/log-consumer.js';
import { VIP_RANGE_KEY } from '../../../src/domain/dataplane/vip.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLocalRoutes } from '../../fakes/fake-local-routes.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

const { signal } = new AbortController();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function rig() {
  const clock = new FakeClock();
  const logger = new FakeLogger();
  const log = new FakeOrderedLog({ clock });
  const view = new LogConsumer(log, clock, logger);
  const routes = new FakeLocalRoutes();
  const subsystem = new VipRoutesSubsystem({ routes, view, clock, random: () => 0.5, logger });
  await view.start();
  await view.ready(signal);
  await subsystem.start();
  stops.push(
    () => subsystem.stop(),
    () => view.stop(),
  );
  const begin = async (range: string) => {
    const changes = [{ key: VIP_RANGE_KEY, value: JSON.stringify(range) }];
    const result = await log.propose({ changes, preconditions: [] }, { signal });
    if (result.outcome !== 'committed') throw new Error(result.outcome);
    await view.reached(result.revision, { signal });
  };
  return { clock, routes, subsystem, begin };
}

test('nothing known is no reason to take anything away', async () => {
  const { clock, routes } = await rig();
  await clock.advance(120_000);
  expect(routes.calls).toBe(0);
});

test('the range of the log is routed as soon as it is known, and looked after', async () => {
  const { clock, routes, subsystem, begin } = await rig();
  await begin('10.192.0.0/16');
  await clock.advance(1);
  expect(routes.dump()).toBe('10.192.0.0/16');
  routes.takeAway();
  await clock.advance(60_000);
  expect(routes.dump()).toBe('10.192.0.0/16');
  await subsystem.stop();
  expect(routes.dump()).toBe('10.192.0.0/16');
});

test('a failure is a problem, is tried again and ends by itself', async () => {
  const { clock, routes, subsystem, begin } = await rig();
  routes.failNext(new AgentError('dataplane.routes_not_set', { problem: 'Operation not permitted' }), 3);
  await begin('10.192.0.0/16');
  await clock.advance(1);
  expect(subsystem.problems()).toMatchObject([{ subject: 'vip routes', since: expect.any(Number) }]);
  await clock.advance(120_000);
  expect(subsystem.problems()).toEqual([]);
  expect(routes.dump()).toBe('10.192.0.0/16');
});
