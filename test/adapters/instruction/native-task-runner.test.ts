import { execFileSync, spawn } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NativeTaskRunner } from '../../../src/adapters/instruction/native-task-runner.js';
import { runnerPath } from '../../../src/adapters/instruction/runner-process.js';
import { sourceArguments } from '../../../src/adapters/threads/typescript-worker.js';
import type { Task, TaskId } from '../../../src/ports/instruction/task-runner.js';
import { processes, programsOf, taskRig } from '../../support/task-rig.js';
import { shell, task, taskId } from '../../support/tasks.js';
import { tempFolder } from '../../support/temp-folder.js';

const options = { signal: new AbortController().signal };

async function said(run: Task): Promise<string> {
  const { open } = await taskRig();
  const { stdout, stderr } = await open().run(run, options);
  return Buffer.concat([stdout.bytes, stderr.bytes]).toString();
}

describe('what a program gets', () => {
  test('exactly its environment, and the mark by which it is found', async () => {
    const { open, runs } = await taskRig();
    const env = { A: '1', HOLDFAST_TASK: 'mine', Z: 'two words' };
    const { stdout } = await open().run(task('a', ['/usr/bin/env'], { env }), options);
    expect(Buffer.from(stdout.bytes).toString()).toBe(`A=1\nZ=two words\nHOLDFAST_TASK=${runs}/${taskId('a')}\n`);
  });

  test('its working directory', async () => {
    const cwd = await tempFolder();
    expect(await said(task('a', ['/bin/pwd'], { cwd }))).toBe(`${cwd}\n`);
  });

  test('arguments as they are, without a shell', async () => {
    expect(await said(task('a', ['/usr/bin/printf', '[%s]', '', '$HOME', 'a b', '*', 'é']))).toBe('[][$HOME][a b][*][é]');
  });

  test('nothing to read', async () => {
    expect(await said(shell('a', 'cat; echo end'))).toBe('end\n');
  });

  test('three descriptors', async () => {
    // The fourth is that of ls itself.
    expect(await said(task('a', ['/bin/ls', '/proc/self/fd']))).toBe('0\n1\n2\n3\n');
  });

  test('a session and a group of its own, with no signal blocked or ignored, and the usual umask', async () => {
    const text = await said(
      shell('a', 'read -r pid _ _ _ group session _ < /proc/self/stat; echo $((pid - group)) $((pid - session)); umask'),
    );
    expect(text).toBe(`0 0\n${process.umask().toString(8).padStart(4, '0')}\n`);
    const signals = await said(task('b', ['/bin/grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status']));
    expect(signals.match(/[0-9a-f]{16}/g)).toEqual(['0000000000000000', '0000000000000000']);
  });

  test('its files, for this user only, where `%f/` says', async () => {
    const { open, runs } = await taskRig();
    const files = {
      script: Buffer.from('stat -c "%a %n" "$1"; cat "$1" && echo "%f/script %f/other $2"'),
      'script.txt': Buffer.from('text\n'),
    };
    const argv: Task['argv'] = ['/bin/sh', '%f/script', '%f/script.txt', 'x%f/none'];
    const { stdout } = await open().run(task('a', argv, { env: { PATH: '/usr/bin:/bin' }, files }), options);
    const folder = join(runs, taskId('a'), 'files');
    expect(Buffer.from(stdout.bytes).toString()).toBe(`600 ${folder}/script.txt\ntext\n%f/script %f/other x%f/none\n`);
  });

  test('a program of its own files', async () => {
    const { open } = await taskRig();
    const run = task('a', ['%f/program'], { files: { program: Buffer.from('#!/bin/sh\n') } });
    expect(await open().run(run, options)).toMatchObject({ startError: 'EACCES', exitCode: -1 });
  });

  test('a script of 8 MiB', async () => {
    const script = Buffer.concat([Buffer.from('echo begin\n'), Buffer.alloc(8 * 1024 * 1024, '#'), Buffer.from('\necho end\n')]);
    expect(await said(task('a', ['/bin/sh', '%f/script'], { files: { script } }))).toBe('begin\nend\n');
  });
});

describe('what does not start', () => {
  test.each([
    ['no folder to work in', task('a', ['/bin/true'], { cwd: '/nowhere' }), 'ENOENT'],
    ['no program', task('a', ['/etc/passwd']), 'EACCES'],
    ['too long an argument', task('a', ['/bin/true', 'x'.repeat(1_000_000)]), 'E2BIG'],
  ])('%s is an end that says so', async (_, run, startError) => {
    const { open } = await taskRig();
    expect(await open().run(run, options)).toMatchObject({ kind: 'exited', exitCode: -1, signal: undefined, startError });
  });

  test.each([
    ['a relative program', task('a', ['true']), 'task: program is not absolute'],
    ['a NUL byte', task('a', ['/bin/echo', 'a\0b']), 'task: argument has a NUL byte'],
    ['no time', task('a', ['/bin/true'], { timeoutMs: 0 }), 'task: time-out is 0'],
    ['a path for a file', task('a', ['/bin/true'], { files: { '../x': Buffer.from('') } }), "task: a file's name is not a name"],
  ])('%s is refused, and certainly not started', async (_, run, problem) => {
    const { open } = await taskRig();
    await expect(open().run(run, options)).rejects.toMatchObject({ code: 'instruction.not_started', facts: { problem } });
    expect(await open().state(run.id, options)).toEqual({ kind: 'not_started' });
  });

  test('without a runner nothing does', async () => {
    const { runs } = await taskRig();
    const runner = new NativeTaskRunner({ folder: runs, runnerPath: '/nowhere/holdfast-runner' });
    await expect(runner.run(task('a', ['/bin/true']), options)).rejects.toMatchObject({
      code: 'instruction.not_started',
      message: expect.stringContaining('/nowhere/holdfast-runner ENOENT'),
    });
    expect(await runner.list(options)).toEqual([]);
  });

  test('where the folder cannot be made nothing does, and it says which', async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, 'run'), '');
    const runner = new NativeTaskRunner({ folder: join(folder, 'run', 'x'), runnerPath: runnerPath(undefined) });
    await expect(runner.run(task('a', ['/bin/true']), options)).rejects.toMatchObject({ code: 'instruction.not_started' });
    await expect(runner.list(options)).rejects.toMatchObject({ code: 'instruction.runner_failed' });
  });

  test('a name that is no hash is refused everywhere', async () => {
    const { open } = await taskRig();
    const id = '../x' as TaskId;
    for (const call of [
      open().state(id, options),
      open().cancel(id, options),
      open().forget(id, options),
      open().adopt(id, options),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'instruction.not_started' });
    }
  });
});

describe('what is killed', () => {
  /** Two below the program, each in a session of its own, and one that has lost its parent. */
  const family = 'setsid sh -c "setsid sleep 1001 & sleep 1002" & (setsid sleep 1003 &); ';

  test('A4: at the deadline everything, also what has left the group', async () => {
    const { open, runs } = await taskRig();
    const end = await open().run(shell('a', `${family} sleep 1004`, { timeoutMs: 500 }), options);
    expect(end).toMatchObject({ timedOut: true, cancelled: false, signal: 9, exitCode: -1 });
    expect(programsOf(runs, taskId('a'))).toEqual([]);
  });

  test('A17: when it is cancelled the same', async () => {
    const { open, runs } = await taskRig();
    const end = open().run(shell('a', `${family} sleep 1004`), options);
    await expect.poll(() => programsOf(runs, taskId('a')).length).toBe(6);
    await open().cancel(taskId('a'), options);
    expect(programsOf(runs, taskId('a'))).toEqual([]);
    expect(await end).toMatchObject({ timedOut: false, cancelled: true, signal: 9 });
  });

  test('after the program’s end what it left behind, at once if it holds no stream', async () => {
    const { open, runs } = await taskRig();
    const began = performance.now();
    const end = await open().run(shell('a', `(${family} sleep 1004 &) >/dev/null 2>&1; exit 7`), options);
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(end).toMatchObject({ exitCode: 7, signal: undefined, timedOut: false });
    expect(programsOf(runs, taskId('a'))).toEqual([]);
  });

  test('after 5 s what holds a stream open; what it said until then is kept', async () => {
    const { open, runs } = await taskRig();
    const began = performance.now();
    const end = await open().run(shell('a', '(sleep 1; echo late; sleep 1001) & echo early'), options);
    expect(performance.now() - began).toBeGreaterThan(4_900);
    expect(performance.now() - began).toBeLessThan(9_000);
    expect(end).toMatchObject({ exitCode: 0, timedOut: false });
    expect(Buffer.from(end.stdout.bytes).toString()).toBe('early\nlate\n');
    expect(programsOf(runs, taskId('a'))).toEqual([]);
  });

  test('what somebody else goes on writing into its stream does not keep it', async () => {
    const { open, runs } = await taskRig();
    const end = open().run(task('a', ['/bin/sleep', '1001']), options);
    await expect.poll(() => programsOf(runs, taskId('a')).length).toBe(1);
    const [program] = programsOf(runs, taskId('a'));
    const stranger = spawn('/bin/sh', ['-c', `exec yes > /proc/${program?.pid}/fd/1`], { stdio: 'ignore' });
    onTestFinished(() => void stranger.kill('SIGKILL'));
    await expect.poll(async () => (await stat(join(runs, taskId('a'), 'stdout'))).size).toBeGreaterThan(100_000);
    await open().cancel(taskId('a'), options);
    const { cancelled, stdout } = await end;
    expect(cancelled).toBe(true);
    expect(stdout.bytes.length).toBeGreaterThan(100_000);
  });

  test('a program that catches what it can', async () => {
    const { open } = await taskRig();
    const script = 'trap "" HUP INT TERM QUIT; echo ready; while :; do sleep 1; done';
    const end = await open().run(shell('a', script, { timeoutMs: 500 }), options);
    expect(end).toMatchObject({ timedOut: true, signal: 9 });
    expect(Buffer.from(end.stdout.bytes).toString()).toBe('ready\n');
  });

  test('a crowd that forks faster than it can be counted', async () => {
    const { open, runs } = await taskRig();
    const script = 'i=0; while [ $i -lt 20 ]; do (while :; do setsid sleep 0.01 & wait; done) & i=$((i + 1)); done; wait';
    const end = await open().run(shell('a', script, { timeoutMs: 1_000 }), options);
    expect(end).toMatchObject({ timedOut: true, signal: 9 });
    expect(programsOf(runs, taskId('a'))).toEqual([]);
  });
});

describe('the folder', () => {
  test('is for this user only, and says in files what became of the task', async () => {
    const { open, runs } = await taskRig();
    await open().run(shell('a', 'printf out; printf err >&2', { files: { f: Buffer.from('') } }), options);
    const folder = join(runs, taskId('a'));
    expect((await readdir(folder)).sort()).toEqual(['exit', 'files', 'lock', 'started', 'stderr', 'stdout']);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect((await stat(runs)).mode & 0o777).toBe(0o700);
    for (const name of ['exit', 'lock', 'started', 'stderr', 'stdout']) {
      expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
    }
    expect(await readFile(join(folder, 'exit'), 'utf8')).toBe(
      'holdfast-exit 1\nexit-code 0\nsignal 0\ntimed-out 0\ncancelled 0\nstart-error -\nstdout 3 0\nstderr 3 0\nend\n',
    );
  });

  test('without `started` says that the task may run, whatever else is in it', async () => {
    const { open, runs } = await taskRig();
    const folder = join(runs, taskId('a'));
    await mkdir(join(folder, 'files'), { recursive: true });
    for (const name of ['lock', 'exit.new', 'stdout', 'files/f'])
      await writeFile(join(folder, name), 'from an attempt that died');
    expect(await open().state(taskId('a'), options)).toEqual({ kind: 'not_started' });
    await expect(open().adopt(taskId('a'), options)).rejects.toMatchObject({ code: 'instruction.not_started' });
    const end = await open().run(task('a', ['/bin/cat', '%f/f'], { files: { f: Buffer.from('new') } }), options);
    expect(Buffer.from(end.stdout.bytes).toString()).toBe('new');
  });

  test.each([
    ['nothing', undefined],
    ['an empty end', ''],
    ['a cut end', 'holdfast-exit 1\nexit-code 0\nsig'],
    ['noise', Buffer.from([0xff, 0, 0xfe])],
    ['an end without an end', Buffer.alloc(100_000, 'x')],
  ])('A5: `started` and %s means interrupted', async (_, exit) => {
    const { open, runs } = await taskRig();
    const folder = join(runs, taskId('a'));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'started'), '');
    if (exit !== undefined) await writeFile(join(folder, 'exit'), exit);
    expect(await open().state(taskId('a'), options)).toEqual({ kind: 'interrupted' });
    await expect(open().adopt(taskId('a'), options)).rejects.toMatchObject({ code: 'instruction.interrupted' });
    await expect(open().run(shell('a', 'exit 0'), options)).rejects.toMatchObject({ code: 'instruction.interrupted' });
    await open().cancel(taskId('a'), options);
    await open().forget(taskId('a'), options);
    expect(await open().list(options)).toEqual([]);
  });

  test('a folder in the end’s place means interrupted', async () => {
    const { open, runs } = await taskRig();
    await mkdir(join(runs, taskId('a'), 'exit'), { recursive: true });
    await writeFile(join(runs, taskId('a'), 'started'), '');
    expect(await open().state(taskId('a'), options)).toEqual({ kind: 'interrupted' });
  });

  test('what is missing of an output counts as dropped', async () => {
    const { open, runs } = await taskRig();
    await open().run(shell('a', 'printf output; printf error >&2'), options);
    await writeFile(join(runs, taskId('a'), 'stdout'), 'out');
    await rm(join(runs, taskId('a'), 'stderr'));
    const { stdout, stderr } = await open().adopt(taskId('a'), options);
    expect([Buffer.from(stdout.bytes).toString(), stdout.dropped, stderr.bytes.length, stderr.dropped]).toEqual(['out', 3, 0, 5]);
  });

  test('A5: for want of descriptors nothing is called interrupted, and nothing starts', async () => {
    const { runs } = await taskRig();
    const program = fileURLToPath(new URL('./support/without-descriptors.ts', import.meta.url));
    const command = ['ulimit -n 100; exec "$0" "$@"', process.execPath, ...sourceArguments, program, runs];
    expect(JSON.parse(execFileSync('/bin/sh', ['-c', ...command], { encoding: 'utf8', timeout: 30_000 }))).toEqual({
      without: ['instruction.runner_failed', 'instruction.not_started'],
      afterwards: ['exited', 'exited'],
    });
  });

  test('links in it lead nowhere', async () => {
    const { open, runs, folder } = await taskRig();
    await mkdir(join(runs, taskId('a')), { recursive: true });
    await symlink(join(folder, 'victim'), join(runs, taskId('a'), 'stdout'));
    // The program is not started, and the end says why: `started` stands already.
    expect(await open().run(shell('a', 'echo x'), options)).toMatchObject({ startError: 'ELOOP', exitCode: -1 });
    await expect(stat(join(folder, 'victim'))).rejects.toThrow('ENOENT');
  });

  test('other names beside it are nobody’s tasks', async () => {
    const { open, runs } = await taskRig();
    await mkdir(join(runs, 'lost+found'), { recursive: true });
    expect(await open().list(options)).toEqual([]);
  });

  test('what was left of a removal that died goes with the next', async () => {
    const { open, runs } = await taskRig();
    await open().run(shell('a', 'exit 0'), options);
    await mkdir(join(runs, `.leaving-${taskId('b')}-0`, 'files'), { recursive: true });
    await open().forget(taskId('a'), options);
    expect(await readdir(runs)).toEqual([]);
  });
});

describe('with systemd', () => {
  /** A systemd-run that says what it was asked for and does it, or fails before. */
  const scopes = async (last: string) => {
    const rig = await taskRig();
    const systemdRun = join(rig.folder, 'systemd-run');
    await writeFile(
      systemdRun,
      `#!/bin/sh\necho "$@" >> ${rig.folder}/asked\nwhile [ "$1" != -- ]; do shift; done; shift\n${last}\n`,
    );
    await chmod(systemdRun, 0o700);
    const runner = new NativeTaskRunner({ folder: rig.runs, runnerPath: runnerPath(process.env.HOLDFAST_RUNNER), systemdRun });
    return { ...rig, runner, asked: () => readFile(join(rig.folder, 'asked'), 'utf8') };
  };

  test('A4: a task has a scope of its own', async () => {
    const { runner, runs, asked } = await scopes('exec "$@"');
    expect(await runner.run(shell('a', 'exit 4'), options)).toMatchObject({ exitCode: 4 });
    const id = taskId('a');
    const path = runnerPath(process.env.HOLDFAST_RUNNER);
    expect(await asked()).toBe(`--scope --quiet --collect --unit holdfast-task-${id} -- ${path} start ${runs} ${id}\n`);
  });

  test.each([
    ['refuses', 'echo no bus >&2; exit 1'],
    ['is killed', 'kill -9 $$'],
  ])('where it %s the task runs without one', async (_, last) => {
    const { runner, asked } = await scopes(last);
    expect(await runner.run(shell('a', 'exit 4'), options)).toMatchObject({ exitCode: 4 });
    expect(await asked()).toContain('--scope');
  });

  test('where it is missing the same', async () => {
    const { runs } = await taskRig();
    const systemdRun = '/nowhere/systemd-run';
    const runner = new NativeTaskRunner({ folder: runs, runnerPath: runnerPath(process.env.HOLDFAST_RUNNER), systemdRun });
    expect(await runner.run(shell('a', 'exit 4'), options)).toMatchObject({ exitCode: 4 });
  });
});

test('waiting for a task leaves no process behind', async () => {
  const { open, runs } = await taskRig();
  const runner = open();
  const aborting = new AbortController();
  const run = runner.run(task('a', ['/bin/sleep', '1000']), options);
  await expect.poll(async () => (await runner.state(taskId('a'), options)).kind).toBe('running');
  const adopted = open().adopt(taskId('a'), { signal: aborting.signal });
  const waiters = () => processes().filter((each) => each.arguments.slice(1).join(' ') === `wait ${runs} ${taskId('a')}`);
  await expect.poll(() => waiters().length).toBe(1);
  aborting.abort(new Error('enough'));
  await expect(adopted).rejects.toThrow('enough');
  await expect.poll(() => waiters().length).toBe(0);
  await runner.cancel(taskId('a'), options);
  await run;
});
