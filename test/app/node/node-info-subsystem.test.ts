import { expect, onTestFinished, test } from 'vitest';
import { NodeInfoSubsystem } from '../../../src/app/node/node-info-subsystem.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeNodeProbe } from '../../fakes/fake-node-probe.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';

const options = { signal: new AbortController().signal };

async function rig() {
  const clock = new FakeClock();
  const log = new FakeOrderedLog({ clock });
  const probe = new FakeNodeProbe();
  const states: Record<string, string> = { link: 'starting' };
  const subsystem = new NodeInfoSubsystem({
    identity: { nodeId: 'web-1' as NodeName, hostname: 'web', labels: { zone: 'a' } },
    ...{ version: '1.0.0', probe, log, clock, random: () => 0, logger: new FakeLogger() },
    subsystems: () => ({ ...states }),
  });
  onTestFinished(() => subsystem.stop());
  await subsystem.start();
  await clock.advance(0);
  const head = async () => (await log.head(options)).revision;
  const held = async () => JSON.parse((await log.snapshot('', options)).items[0]?.value ?? 'null');
  return { clock, log, probe, states, subsystem, head, held };
}

test('E11: the record is there at once, and is not written again while nothing changes', async () => {
  const { clock, head, held } = await rig();
  expect(await held()).toMatchObject({
    hostname: 'web',
    version: '1.0.0',
    labels: { zone: 'a' },
    subsystems: { link: 'starting' },
  });
  const first = await head();
  await clock.advance(600_000);
  expect(await head()).toBe(first);
});

test('E11: a change is written within a minute, at most one in 10 s', async () => {
  const { clock, states, probe, head, held } = await rig();
  const first = await head();
  states.link = 'ready';
  await clock.advance(60_000);
  expect(await held()).toMatchObject({ subsystems: { link: 'ready' } });
  for (let second = 0; second < 120; second++) {
    probe.machine = { ...probe.machine, addresses: [`10.0.0.${second}`] };
    await clock.advance(1_000);
  }
  expect((await head()) - first).toBeLessThanOrEqual(13n);
});

test('what could not be written is written later', async () => {
  const { clock, log, probe, held } = await rig();
  probe.machine = { ...probe.machine, hostname: 'other' };
  log.failNext();
  await clock.advance(61_000);
  expect(await held()).toMatchObject({ hostname: 'web' });
  await clock.advance(61_000);
  expect(await held()).toMatchObject({ hostname: 'other' });
});
