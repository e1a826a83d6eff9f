import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SystemClock } from '../../../src/adapters/clock/system-clock.js';
import { SqliteControlStore } from '../../../src/adapters/store/sqlite-control-store.js';
import { ControlStoreSubsystem } from '../../../src/app/store/control-store-subsystem.js';
import type { Nid } from '../../../src/domain/link/model.js';
import { agentFacts, base64, fleetOn, options, tagOf } from '../../support/fleet-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

const nodes = Array.from({ length: 50 }, (_, i) => `n${i}` as Nid);
const tags = Array.from({ length: 10 }, (_, i) => tagOf(`t${i}`));

async function opened(file: string) {
  const clock = new SystemClock();
  const store = new SqliteControlStore({ file, clock });
  const subsystem = new ControlStoreSubsystem(store);
  onTestFinished(() => subsystem.stop());
  await subsystem.start(options.signal);
  return { fleet: await fleetOn(store, clock), close: () => subsystem.stop() };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('500 instructions for 50 nodes outlive the server: each is delivered in order, its result stands', async () => {
  const file = join(await tempFolder(), 'control.db');
  const first = await opened(file);
  for (const nid of nodes) first.fleet.registrations.register(nid);
  await Promise.all(
    nodes.map(async (nid) => {
      for (const tag of tags) await first.fleet.send({ nid, tag });
    }),
  );
  const early = await first.fleet.connect({ nid: 'n0' as Nid });
  await until(() => early.stream.told.length === tags.length);
  await early.say('NODE_STATUS', 't3', base64('{"before":true}'));
  await until(() => early.stream.told.includes('RESULT_ACK t3'));
  await first.fleet.stop();
  await first.close();

  const { fleet } = await opened(file);
  const streams = await Promise.all(nodes.map((nid) => fleet.connect({ nid, agent: agentFacts({ instance: 'i2' }) })));
  const wanted = (nid: Nid) => tags.filter((tag) => nid !== 'n0' || tag !== 't3').map((tag) => `GET_NODE_STATUS ${tag}`);
  await until(() => streams.every(({ stream }, i) => stream.told.length === wanted(nodes[i] ?? ('' as Nid)).length));
  expect(streams.map(({ stream }) => stream.told)).toEqual(nodes.map(wanted));
  for (const { say, stream } of streams)
    for (const { tag } of [...stream.sent]) await say('NODE_STATUS', tag, base64(`{"of":"${tag}"}`));
  await until(() => fleet.book.openCount() === 0);
  const results = await fleet.instructions.list({}, options);
  expect(results.filter(({ state }) => state === 'done')).toHaveLength(nodes.length * tags.length);
  expect((await fleet.instructions.get('n0' as Nid, tagOf('t3'), options)).reply?.jsonB64).toBe(base64('{"before":true}'));
  expect((await fleet.instructions.get('n9' as Nid, tagOf('t3'), options)).reply?.jsonB64).toBe(base64('{"of":"t3"}'));
});
