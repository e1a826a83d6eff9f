import { spawnSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runnerPath } from '../../../src/adapters/instruction/runner-process.js';
import { encodeTask } from '../../../src/adapters/instruction/task-codec.js';
import { taskRig } from '../../support/task-rig.js';
import { shell, taskId } from '../../support/tasks.js';

const options = { signal: new AbortController().signal };
const path = runnerPath(process.env.HOLDFAST_RUNNER);

function call(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(path, args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** The runner finds in its input what an agent wrote of a task before it died. */
async function startedByADeadAgent(length: number) {
  const rig = await taskRig();
  const message = join(rig.folder, 'message');
  await writeFile(message, encodeTask(shell('a', `echo ran > ${rig.folder}/ran`)).subarray(0, length));
  await mkdir(rig.runs);
  const script = 'cat "$1" | { sleep 0.3; exec "$2" start "$3" "$4"; }';
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', script, 'sh', message, path, rig.runs, taskId('a')], {
    encoding: 'utf8',
  });
  return { ...rig, said: { status, stdout, stderr } };
}

describe('A4: an agent dies while it starts a task', () => {
  test('after all was said: nothing starts, since the next agent may have called it not started', async () => {
    const { open, folder, said } = await startedByADeadAgent(1_000_000);
    expect(said).toEqual({ status: 1, stdout: '', stderr: 'who asked for it is gone\n' });
    expect(await open().state(taskId('a'), options)).toEqual({ kind: 'not_started' });
    expect((await readdir(folder)).sort()).toEqual(['message', 'run']);
  });

  test.each([0, 5, 12, 40])('after %i bytes: nothing starts', async (length) => {
    const { open, said } = await startedByADeadAgent(length);
    expect(said).toEqual({ status: 1, stdout: '', stderr: 'task: truncated\n' });
    expect(await open().state(taskId('a'), options)).toEqual({ kind: 'not_started' });
  });

  test('the next agent may start it', async () => {
    const { open, folder } = await startedByADeadAgent(1_000_000);
    expect(await open().run(shell('a', `echo ran > ${folder}/ran`), options)).toMatchObject({ exitCode: 0 });
    expect((await readdir(folder)).sort()).toEqual(['message', 'ran', 'run']);
  });
});

test.each([
  [[]],
  [['start']],
  [['begin', '/', taskId('a')]],
  [['start', 'relative', taskId('a')]],
  [['start', '/', 'a']],
  [['start', '/', taskId('a').toUpperCase()]],
  [['start', '/', `${taskId('a')}/..`]],
  [['start', '/', taskId('a'), 'more']],
])('%j is a mistake of whoever calls', (args) => {
  expect(call(...args)).toEqual({ status: 2, stdout: '', stderr: 'usage: holdfast-runner start|state|wait|cancel RUNS ID\n' });
});

test.each(['state', 'wait', 'cancel'])('`%s` of what is not there has nothing to do', async (mode) => {
  const { runs } = await taskRig();
  expect(call(mode, runs, taskId('a'))).toEqual({ status: 0, stdout: 'settled\n', stderr: '' });
});

test('noise is no task', async () => {
  const { runs } = await taskRig();
  const { status, stdout, stderr } = spawnSync(path, ['start', runs, taskId('a')], {
    input: 'x'.repeat(1_000),
    encoding: 'utf8',
  });
  expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: '', stderr: 'task: not a task\n' });
});
