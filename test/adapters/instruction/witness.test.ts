import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runnerPath } from '../../../src/adapters/instruction/runner-process.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import type { TaskId } from '../../../src/ports/instruction/task-runner.js';
import { runnersOf, taskRig } from '../../support/task-rig.js';
import { taskId } from '../../support/tasks.js';

const AGENT = fileURLToPath(new URL('./support/run-tasks.ts', import.meta.url));

type Who = 'keeper' | 'supervisor';
type End = string | { readonly exitCode: number; readonly signal?: number; readonly kept: number; readonly dropped: number };

function agent(runs: string, count: number, script: string, maxOutputBytes = 1_000): readonly [string, ...string[]] {
  return [process.execPath, ...sourceArguments, AGENT, runs, String(count), script, String(maxOutputBytes)];
}

function start([command, ...args]: readonly [string, ...string[]]): ChildProcess & {
  stdout: NonNullable<ChildProcess['stdout']>;
} {
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function linesOf(file: string): Promise<readonly string[]> {
  const content = await readFile(file, 'utf8').catch(() => '');
  return content.split('\n').filter((line) => line !== '');
}

/** How often each of `count` numbers stands in the file. */
async function timesIn(file: string, count: number): Promise<readonly number[]> {
  const lines = await linesOf(file);
  return Array.from({ length: count }, (_, number) => lines.filter((line) => line === String(number)).length);
}

test('A4: a script appends to a file while its agent is killed 30 times: one line each, and every end is known', async () => {
  const { folder, runs } = await taskRig();
  const witness = join(folder, 'witness');
  const count = 60;
  const command = agent(runs, count, `sleep 0.1; echo "$TASK" >> ${witness}; sleep 0.1`);
  for (let i = 0; i < 30; i += 1) {
    const killed = start(command);
    const begun = (await linesOf(witness)).length;
    // Most of the time it takes to be there; then anywhere in its work.
    for (let waited = 0; waited < 2_000 && (await linesOf(witness)).length === begun && killed.exitCode === null; waited += 20)
      await sleep(20);
    await sleep(Math.random() * 150);
    killed.kill('SIGKILL');
    if (killed.exitCode === null && killed.signalCode === null) await once(killed, 'exit');
  }
  const last = start(command);
  const ends: readonly End[] = JSON.parse(await text(last.stdout));
  expect(ends).toEqual(Array.from({ length: count }, () => ({ exitCode: 0, kept: 0, dropped: 0 })));
  expect(await timesIn(witness, count)).toEqual(Array.from({ length: count }, () => 1));
}, 240_000);

test('A5: runners are killed as well: a line at most, and what is not interrupted has one', async () => {
  const { folder, runs } = await taskRig();
  const witness = join(folder, 'witness');
  const count = 45;
  const running = start(agent(runs, count, `sleep 0.2; echo "$TASK" >> ${witness}; sleep 0.2`));
  const output = text(running.stdout);
  let killed = 0;
  for (let number = 0; number < count; number += 1) {
    const id = taskId(`task ${number}`);
    const found = await foundRunner(runs, id, running);
    if (found === undefined || number % 3 === 0) continue;
    await sleep(Math.random() * 300);
    for (const pid of number % 3 === 1 ? [found.supervisor] : [found.keeper, found.supervisor]) {
      if (!isRunner(pid)) continue;
      process.kill(pid, 'SIGKILL');
      killed += 1;
    }
  }
  const ends: readonly End[] = JSON.parse(await output);
  const times = await timesIn(witness, count);
  expect(killed).toBeGreaterThan(5);
  for (const [number, end] of ends.entries()) {
    if (end === 'instruction.interrupted') expect(times[number]).toBeLessThanOrEqual(1);
    else expect([end, times[number]]).toEqual([{ exitCode: 0, kept: 0, dropped: 0 }, 1]);
  }
}, 120_000);

async function foundRunner(runs: string, id: TaskId, running: ChildProcess): Promise<Readonly<Record<Who, number>> | undefined> {
  for (let waited = 0; waited < 10_000 && running.exitCode === null; waited += 10) {
    const { keeper, supervisor } = runnersOf(runs, id);
    if (keeper !== undefined && supervisor !== undefined) return { keeper, supervisor };
    if (existsSync(join(runs, id, 'exit'))) return undefined;
    await sleep(10);
  }
  return undefined;
}

function isRunner(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === runnerPath(process.env.HOLDFAST_RUNNER);
  } catch {
    return false; // it has ended
  }
}

function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test.skipIf(!canMount())('the disk is full (a tmpfs; needs root): the output is cut, and the end is known', async () => {
  const { folder } = await taskRig();
  // 512 KiB of disk for 3 MiB of output.
  const script = `mount -t tmpfs -o size=512k tmpfs ${folder} && shift && exec "$@"`;
  const command = agent(join(folder, 'run'), 1, 'head -c 3145728 /dev/zero; exit 5', 4_000_000);
  const ends = JSON.parse(
    execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', '', ...command], { encoding: 'utf8', timeout: 60_000 }),
  );
  expect(ends).toEqual([{ exitCode: 5, kept: expect.any(Number), dropped: expect.any(Number) }]);
  const [{ kept, dropped }] = ends;
  expect(kept + dropped).toBe(3_145_728);
  expect(kept).toBeGreaterThan(100_000);
  expect(kept).toBeLessThan(524_288);
});

test.skipIf(!canMount())('the disk is full before the start (a tmpfs; needs root): certainly not started', async () => {
  const { folder } = await taskRig();
  const script = `mount -t tmpfs -o size=64k tmpfs ${folder} && head -c 65536 /dev/zero > ${folder}/filler; shift && exec "$@"`;
  const command = agent(join(folder, 'run'), 1, 'exit 5');
  const ends = JSON.parse(
    execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', '', ...command], {
      encoding: 'utf8',
      timeout: 60_000,
      stdio: 'pipe',
    }),
  );
  expect(ends).toEqual(['instruction.not_started']);
});
