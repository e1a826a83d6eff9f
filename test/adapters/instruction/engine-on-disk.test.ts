import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SqliteJournal } from '../../../src/adapters/instruction/sqlite-journal.js';
import { acknowledging, contentOf, type FakeSession, InstructionWorld, type Process } from '../../support/instruction-rig.js';
import { tempFolder } from '../../support/temp-folder.js';

/** The engine on a real journal; time is still the test's. */
async function onDisk() {
  const world = new InstructionWorld();
  const file = join(await tempFolder(), 'journal.db');
  const start = async (): Promise<{ process: Process; journal: SqliteJournal }> => {
    const journal = new SqliteJournal({ file, clock: world.clock, reserveBytes: 4_096 });
    return { process: await world.start({ journal }), journal };
  };
  return { world, file, start };
}

/** What is sent comes through a thread: it takes real time. */
async function answers(session: FakeSession, count: number): Promise<readonly string[]> {
  await expect.poll(() => session.sent.length, { timeout: 10_000 }).toBe(count);
  return session.sent.map(contentOf);
}

test('A1, A10: one effect, its reply over a restart, and a repeat', async () => {
  const { world, start } = await onDisk();
  world.script('hello', 'echo');
  const first = await start();
  const session = first.process.connect();
  first.process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
  const [reply] = await answers(session, 1);
  expect(reply).toContain('out of echo');
  await first.process.engine.stop();

  const second = await start();
  const again = second.process.connect(acknowledging(second.process));
  expect(await answers(again, 1)).toEqual([reply]);
  await world.clock.advance(1_000);
  await expect.poll(() => second.process.engine.snapshot().unconfirmed).toBe(0);
  second.process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
  expect(await answers(again, 2)).toEqual([reply, reply]);
  expect(world.ran).toEqual(['echo']);
  await second.process.engine.stop();
});

test('A7: what may run again does so from its payload in the journal', async () => {
  const { world, start } = await onDisk();
  world.script('hello', 'sleep 600');
  const first = await start();
  first.process.connect();
  first.process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello', repeatable: true });
  await expect.poll(() => world.ran.length).toBe(1);
  await first.process.engine.stop();
  for (const { id } of world.tasks.started) world.tasks.interrupt(id);
  const second = await start();
  await expect.poll(() => world.ran.length).toBe(2);
  expect(second.process.engine.snapshot().instructions).toMatchObject([{ tag: 't1', state: 'started', attempt: 2 }]);
  await second.process.engine.stop();
});

test('A12, test 7: yesterday’s copy of the journal has the same id and a lower counter: the server sees that a memory is gone', async () => {
  const { world, file, start } = await onDisk();
  world.script('hello', 'echo');
  const first = await start();
  const before = first.journal.facts();
  await first.process.engine.stop();
  await copyFile(file, `${file}.yesterday`);
  const second = await start();
  const session = second.process.connect();
  second.process.deliver('RUN_REMOTE_SCRIPT', 't1', { script: 'hello' });
  await answers(session, 1);
  const today = second.journal.facts();
  await second.process.engine.stop();
  await rm(`${file}-wal`, { force: true });
  await copyFile(`${file}.yesterday`, file);
  const third = await start();
  expect(third.journal.facts()?.id).toBe(today?.id);
  expect(third.journal.facts()?.counter).toBeLessThan(today?.counter ?? 0n);
  expect(third.journal.facts()).toEqual(before);
  await third.process.engine.stop();
});

test('200 instructions share their commits', async () => {
  const { world, start } = await onDisk();
  for (let number = 0; number < 200; number++) world.script(`s${number}`, `run ${number}`);
  const { process, journal } = await start();
  const session = process.connect(acknowledging(process));
  const before = journal.facts()?.counter ?? 0n;
  for (let number = 0; number < 200; number++) process.deliver('RUN_REMOTE_SCRIPT', `t${number}`, { script: `s${number}` });
  expect(new Set(await answers(session, 200)).size).toBe(200);
  expect(world.ran).toHaveLength(200);
  // Received, started, fetched and finished of each would be 800.
  expect((journal.facts()?.counter ?? 0n) - before).toBeLessThan(600n);
  await process.engine.stop();
});
