import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processes, runnersOf, taskRig } from '../../support/task-rig.js';
import { shell, task, taskId } from '../../support/tasks.js';

const options = { signal: new AbortController().signal };
const MiB = 1024 * 1024;

function residentBytes(pid: number | undefined): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

test('A15: an endless stream is read on and kept to its limit, in little memory', async () => {
  const { open, runs } = await taskRig();
  const runner = open();
  const end = runner.run(shell('a', 'yes; yes >&2', { timeoutMs: 4_000, maxOutputBytes: 2 * MiB }), options);
  await expect.poll(() => runnersOf(runs, taskId('a')).keeper).toBeDefined();
  const { keeper, supervisor } = runnersOf(runs, taskId('a'));
  let largest = 0;
  for (let i = 0; i < 20; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    largest = Math.max(largest, residentBytes(keeper) + residentBytes(supervisor));
  }
  expect(largest).toBeGreaterThan(0);
  expect(largest).toBeLessThan(20 * MiB);
  const { stdout, stderr, timedOut } = await end;
  expect(timedOut).toBe(true);
  expect(Buffer.from(stdout.bytes).equals(Buffer.from('y\n'.repeat(MiB)))).toBe(true);
  // A full pipe would have held it at 64 KiB after the limit.
  expect(stdout.dropped).toBeGreaterThan(10 * MiB);
  expect([stderr.bytes.length, stderr.dropped]).toEqual([0, 0]);
}, 60_000);

test('both streams of a task have limits of their own', async () => {
  const { open } = await taskRig();
  const script = 'head -c 100000 /dev/zero; head -c 300000 /dev/zero >&2';
  const { stdout, stderr } = await open().run(shell('a', script, { maxOutputBytes: 150_000 }), options);
  expect([stdout.bytes.length, stdout.dropped]).toEqual([100_000, 0]);
  expect([stderr.bytes.length, stderr.dropped]).toEqual([150_000, 150_000]);
});

test('1,000 short commands leave no process and no descriptor', async () => {
  const { open, runs } = await taskRig();
  const runner = open();
  const descriptors = () => readdirSync('/proc/self/fd').length;
  await runner.run(task('warm up', ['/bin/true']), options);
  const before = descriptors();
  let next = 0;
  const runSome = async () => {
    while (next < 1_000) {
      next += 1;
      const { exitCode } = await runner.run(task(`task ${next}`, ['/bin/true']), options);
      expect(exitCode).toBe(0);
    }
  };
  await Promise.all([1, 2, 3, 4].map(runSome));
  expect(await runner.list(options)).toHaveLength(1_001);
  // Zombies have no arguments; this process has no other children.
  await expect.poll(() => processes().filter(({ parent }) => parent === process.pid)).toEqual([]);
  expect(processes().filter((each) => each.arguments.includes(runs))).toEqual([]);
  await expect.poll(descriptors).toBeLessThanOrEqual(before);
}, 300_000);

test('a task that is forgotten leaves nothing on the disk', async () => {
  const { open, runs } = await taskRig();
  const runner = open();
  for (let i = 0; i < 10; i += 1) {
    await runner.run(shell(`task ${i}`, 'echo x', { files: { f: Buffer.from('x') } }), options);
    await runner.forget(taskId(`task ${i}`), options);
  }
  expect(readdirSync(join(runs))).toEqual([]);
});
