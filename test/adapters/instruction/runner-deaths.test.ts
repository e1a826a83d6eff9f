import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { TaskRig } from '../../support/task-rig.js';
import { programsOf, runnersOf, taskRig } from '../../support/task-rig.js';
import { shell, taskId } from '../../support/tasks.js';

const options = { signal: new AbortController().signal };
const id = taskId('a');

/** A program with two grandchildren that have left its group, one of them without a parent, all running. */
async function family(): Promise<TaskRig & { readonly end: Promise<unknown>; readonly more: () => Promise<void> }> {
  const rig = await taskRig();
  onTestFinished(() => rig.open().cancel(id, options));
  // Their streams are closed, since open ones are waited for 5 s.
  const sleepers = '{ setsid sleep 1001 & (setsid sleep 1002 &); } >/dev/null 2>&1';
  const script = `${sleepers}; while [ ! -e ${rig.folder}/more ]; do sleep 0.05; done; echo done; exit 3`;
  const end = rig
    .open()
    .run(shell('a', script), options)
    .catch((error: unknown) => error);
  await expect
    .poll(() => programsOf(rig.runs, id).filter((each) => each.arguments[0] === 'sleep').length)
    .toBeGreaterThanOrEqual(3);
  return { ...rig, end, more: () => appendFile(join(rig.folder, 'more'), '') };
}

/** Dying takes a moment, in which the task still runs. */
async function killBoth({ kill, runs }: TaskRig): Promise<void> {
  kill(id, ['keeper', 'supervisor']);
  await expect.poll(() => runnersOf(runs, id)).toEqual({ keeper: undefined, supervisor: undefined });
}

describe('A4: of the two runner processes', () => {
  test('the keeper may die: the task goes on, and its end is the true one', async () => {
    const { open, runs, kill, end, more } = await family();
    kill(id, ['keeper']);
    await expect.poll(() => runnersOf(runs, id).keeper).toBeUndefined();
    expect(await open().state(id, options)).toEqual({ kind: 'running' });
    await more();
    expect(await end).toMatchObject({ exitCode: 3, signal: undefined });
    expect(programsOf(runs, id)).toEqual([]);
  });

  test('without the keeper it can be cancelled', async () => {
    const { open, runs, kill, end } = await family();
    kill(id, ['keeper']);
    await open().cancel(id, options);
    expect(await end).toMatchObject({ cancelled: true, signal: 9 });
    expect(programsOf(runs, id)).toEqual([]);
  });

  test('A5: where the supervisor dies the keeper kills what is left before the task is called interrupted', async () => {
    const { open, runs, kill, end } = await family();
    kill(id, ['supervisor']);
    expect(await end).toMatchObject({ code: 'instruction.interrupted' });
    expect(programsOf(runs, id)).toEqual([]);
    expect(await open().state(id, options)).toEqual({ kind: 'interrupted' });
  });

  test.each([
    ['state', async ({ open }: TaskRig) => expect(await open().state(id, options)).toEqual({ kind: 'interrupted' })],
    ['cancel', async ({ open }: TaskRig) => open().cancel(id, options)],
    ['forget', async ({ open }: TaskRig) => open().forget(id, options)],
    [
      'adopt',
      async ({ open }: TaskRig) =>
        expect(
          await open()
            .adopt(id, options)
            .catch((error) => error.code),
        ).toMatch('interrupted'),
    ],
  ] as const)('A5: where both die `%s` finds what is left by its mark, and answers when it is dead', async (_, ask) => {
    const rig = await family();
    await killBoth(rig);
    await ask(rig);
    expect(programsOf(rig.runs, id)).toEqual([]);
    expect(await rig.end).toMatchObject({ code: 'instruction.interrupted' });
  });

  test('A5: a task of the same name in another agent’s folder is left alone', async () => {
    const other = await family();
    const rig = await family();
    await killBoth(rig);
    expect(await rig.open().state(id, options)).toEqual({ kind: 'interrupted' });
    expect(programsOf(rig.runs, id)).toEqual([]);
    expect(programsOf(other.runs, id).length).toBeGreaterThanOrEqual(3);
    await other.open().cancel(id, options);
    expect(await other.end).toMatchObject({ cancelled: true });
  });

  test.each(['keeper', 'supervisor'] as const)('SIGTERM to the %s ends the task and leaves no child', async (who) => {
    const { runs, kill, end } = await family();
    kill(id, [who], 'SIGTERM');
    expect(await end).toMatchObject({ cancelled: true, timedOut: false, signal: 9, exitCode: -1 });
    expect(programsOf(runs, id)).toEqual([]);
  });

  test('SIGHUP, as when a terminal goes, changes nothing', async () => {
    const { kill, end, more } = await family();
    kill(id, ['keeper', 'supervisor'], 'SIGHUP');
    await more();
    expect(await end).toMatchObject({ exitCode: 3 });
  });

  test('a frozen task keeps its deadline, though nobody is there to cancel it', async () => {
    const rig = await taskRig();
    const end = rig.open().run(shell('a', 'kill -STOP $$', { timeoutMs: 500 }), options);
    expect(await end).toMatchObject({ timedOut: true, signal: 9 });
  });
});

test('a program that dies by SIGKILL of somebody else is neither timed out nor cancelled', async () => {
  const { open } = await taskRig();
  expect(await open().run(shell('a', 'kill -KILL $$'), options)).toMatchObject({ signal: 9, timedOut: false, cancelled: false });
});

test('ended right at the deadline is no time-out, and no end is without a reason', async () => {
  const { open } = await taskRig();
  const runner = open();
  const ends = [];
  for (let i = 0; i < 40; i += 1) {
    // Around the moment in which the program ends by itself.
    ends.push(await runner.run(shell(`task ${i}`, 'sleep 0.02; exit 3', { timeoutMs: 14 + i / 2 }), options));
  }
  for (const { exitCode, signal, timedOut } of ends) {
    expect([`3 undefined false`, '-1 9 true']).toContain(`${exitCode} ${signal} ${timedOut}`);
  }
});

test('A4: two agents start one task at the same time, again and again: it runs once', async () => {
  const { folder, open } = await taskRig();
  const agents = [open(), open(), open()];
  for (let i = 0; i < 20; i += 1) {
    const run = shell(`task ${i}`, `echo ${i} >> ${folder}/witness`);
    const ends = await Promise.all(agents.map((agent) => agent.run(run, options)));
    expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  }
  const lines = (await readFile(join(folder, 'witness'), 'utf8')).trim().split('\n');
  expect(lines).toEqual(Array.from({ length: 20 }, (_, i) => String(i)));
});
