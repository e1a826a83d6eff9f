import { expect, test } from 'vitest';
import { OptionalServerSubsystem } from '../../../src/app/agent/optional-server-subsystem.js';
import { AgentError } from '../../../src/domain/kernel/errors.js';
import type { DrivingServer } from '../../../src/ports/driving/server.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';

/** Serves as soon as nothing stands in its way. */
class FakeServer implements DrivingServer {
  obstacle: Error | undefined;
  attempts = 0;
  serves = false;

  async start(): Promise<void> {
    this.attempts++;
    if (this.obstacle !== undefined) throw this.obstacle;
    this.serves = true;
  }

  async stop(): Promise<void> {
    this.serves = false;
  }
}

function setUp() {
  const clock = new FakeClock();
  const logger = new FakeLogger();
  const server = new FakeServer();
  const subsystem = new OptionalServerSubsystem({ name: 'metrics', server, clock, random: () => 0, logger });
  return { clock, logger, server, subsystem };
}

test('serves from its start to its stop, and may be stopped before and twice', async () => {
  const { server, subsystem } = setUp();
  await subsystem.stop();
  await subsystem.start();
  expect([server.serves, subsystem.problems()]).toEqual([true, []]);
  await subsystem.stop();
  await subsystem.stop();
  expect(server.serves).toBe(false);
});

test('what it cannot have is a problem until it has it, and no reason to stop; the waits double', async () => {
  const { clock, logger, server, subsystem } = setUp();
  const since = clock.now();
  server.obstacle = new AgentError('metrics.not_served', { problem: '127.0.0.1:9193 cannot be bound: EADDRINUSE' });
  await subsystem.start();
  const problem = {
    subject: 'metrics',
    reason: '127.0.0.1:9193 cannot be bound: EADDRINUSE',
    since,
    remedy:
      'free the port: it is tried again by itself; or name another in metrics.listen (server.listen.metrics of a server) and start again',
  };
  expect(subsystem.problems()).toEqual([problem]);
  // Half of 1 s, 2 s and 4 s: chance adds nothing here.
  for (const [wait, attempts] of [
    [499, 1],
    [1, 2],
    [999, 2],
    [1, 3],
    [1_999, 3],
    [1, 4],
  ] as const) {
    await clock.advance(wait);
    expect(server.attempts).toBe(attempts);
  }
  expect(subsystem.problems()).toEqual([problem]);
  server.obstacle = undefined;
  await clock.advance(4_000);
  expect([server.serves, subsystem.problems()]).toEqual([true, []]);
  expect(logger.dump()).toMatch(/^(warn metrics: failed, will be tried again\n){4}info metrics: works again$/);
  await subsystem.stop();
});

test('what nobody foresaw is a problem too, and a stop ends the tries', async () => {
  const { clock, server, subsystem } = setUp();
  server.obstacle = new Error('a bug');
  await subsystem.start();
  expect(subsystem.problems()).toMatchObject([{ subject: 'metrics', reason: 'a bug' }]);
  await subsystem.stop();
  await clock.advance(60_000);
  expect(server.attempts).toBe(1);
});
