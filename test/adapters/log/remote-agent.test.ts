import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { bootTime } from '../../../src/adapters/clock/boot-time.js';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { SqliteViewStore } from '../../../src/adapters/log/sqlite-view-store.js';
import { RemoteLogConsumer } from '../../../src/app/log/remote-log-consumer.js';
import { ViewKeeper } from '../../../src/app/log/view-keeper.js';
import { STALE_AFTER_MS } from '../../../src/domain/log/freshness.js';
import type { Change } from '../../../src/domain/log/model.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import { logServiceRig, remoteLog } from '../../support/log-service-rig.js';
import { drop, hidden, put } from '../../support/remote-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };
const clock = new SystemClock();

/** An agent's end of the log on a file of its own, as a process has it. */
async function agent(port: number, file: string) {
  const { log, close } = remoteLog(port, clock);
  const parts = { clock, random: () => 0.1, logger: new FakeLogger() };
  const keeper = new ViewKeeper({
    ...parts,
    store: new SqliteViewStore(file),
    binding: { fleet: 'f', nid: 'n1', registration: 'r1' },
  });
  const consumer = new RemoteLogConsumer({ ...parts, log, keeper, bootTime, staleAfterMs: STALE_AFTER_MS });
  let running = true;
  const stop = async () => {
    if (!running) return;
    running = false;
    await consumer.stop(options.signal);
    close();
  };
  onTestFinished(stop);
  await consumer.start(options.signal);
  const held = () =>
    [...consumer.state.all()]
      .map(({ resource }) => resource.metadata.name)
      .sort()
      .join(' ');
  return { consumer, held, stop };
}

async function write(log: FakeOrderedLog, ...changes: readonly Change[]): Promise<void> {
  await log.propose({ changes, preconditions: [] }, options);
}

test('an agent over the wire: kill of the server, restart without it, another log is held back', async () => {
  const file = join(await tempFolder(), 'view.db');
  const log = new FakeOrderedLog({ clock });
  let server = await logServiceRig({ log, clock });
  const { port } = server;
  const restartOn = async (other: FakeOrderedLog) => {
    server = await logServiceRig({ log: other, clock, port });
    onTestFinished(server.stop);
  };
  onTestFinished(server.stop);

  await write(log, put('a'), hidden('x'));
  const first = await agent(port, file);
  await expect.poll(first.held, { timeout: 10_000 }).toBe('a');
  await write(log, put('b'));
  await expect.poll(first.held).toBe('a b');

  server.stop();
  await write(log, drop('a'), put('c'));
  await restartOn(log);
  await expect.poll(first.held, { timeout: 20_000 }).toBe('b c');
  await first.stop();

  server.stop();
  const alone = await agent(port, file);
  await alone.consumer.ready(options.signal);
  expect([alone.held(), alone.consumer.state.cursor]).toEqual(['b c', await log.head(options)]);

  const other = new FakeOrderedLog({ clock });
  await write(other, put('d'));
  await restartOn(other);
  await expect.poll(() => alone.consumer.problems()[0]?.reason, { timeout: 20_000 }).toContain('MASS_REMOVAL_HELD');
  expect(alone.held()).toBe('b c');
  await write(other, put('e'));
  await expect.poll(alone.held, { timeout: 10_000 }).toBe('d e');
  expect(alone.consumer.problems()).toEqual([]);
});

test('the boot-time clock goes on as time does', async () => {
  const before = bootTime();
  await sleep(100);
  const passed = bootTime() - before;
  expect(before).toBeGreaterThan(0);
  expect(passed).toBeGreaterThanOrEqual(80);
  expect(passed).toBeLessThan(10_000);
});
