import { describe, expect, onTestFinished, test } from 'vitest';
import type { Task, TaskExit, TaskId, TaskOutput, TaskRunner } from '../../src/ports/instruction/task-runner.js';
import { task, taskId } from '../support/tasks.js';

const options = { signal: new AbortController().signal };

/** Programs that are there, whatever runs them. */
export interface TaskPrograms {
  /** Says `out` and `err` on its streams and ends with exit code 3. */
  readonly says: Task['argv'];
  /** Says 1,000 times `x`. */
  readonly fills: Task['argv'];
  /** Says something else each time. */
  readonly differs: Task['argv'];
  /** Ends by signal 15. */
  readonly falls: Task['argv'];
  /** Does not end. */
  readonly waits: Task['argv'];
}

export interface TaskRunnerRig {
  /** The same tasks, as another process sees them. */
  readonly open: () => TaskRunner;
  readonly programs: TaskPrograms;
  /** Every process of the task dies, as in a power cut. */
  readonly interrupt: (id: TaskId) => Promise<void>;
}

const text = ({ bytes, dropped }: TaskOutput) => `${new TextDecoder().decode(bytes)}+${dropped}`;
const facts = ({ stdout, stderr, ...rest }: TaskExit) => ({ ...rest, stdout: text(stdout), stderr: text(stderr) });
const exited = {
  kind: 'exited',
  exitCode: 0,
  signal: undefined,
  timedOut: false,
  cancelled: false,
  startError: undefined,
  stdout: '+0',
  stderr: '+0',
};

/** Every TaskRunner must pass. `make` gives one without tasks. */
export function taskRunnerContract(name: string, make: () => Promise<TaskRunnerRig>): void {
  /** Runs a task that does not end, until the test is over. */
  const waiting = async () => {
    const rig = await make();
    const runner = rig.open();
    const { id } = task('waits', rig.programs.waits);
    onTestFinished(() => runner.cancel(id, options));
    const end = runner.run(task('waits', rig.programs.waits), options).catch((error: unknown) => error);
    await expect.poll(async () => (await runner.state(id, options)).kind).toBe('running');
    return { ...rig, runner, id, end };
  };

  describe(`TaskRunner: ${name}`, () => {
    describe('an end', () => {
      test('is the exit code and what the streams said', async () => {
        const { open, programs } = await make();
        const end = await open().run(task('a', programs.says), options);
        expect(facts(end)).toEqual({ ...exited, exitCode: 3, stdout: 'out+0', stderr: 'err+0' });
      });

      test('by a signal has no exit code', async () => {
        const { open, programs } = await make();
        expect(facts(await open().run(task('a', programs.falls), options))).toEqual({ ...exited, exitCode: -1, signal: 15 });
      });

      test('of a program that is not there says why', async () => {
        const { open } = await make();
        const end = await open().run(task('a', ['/nowhere/program']), options);
        expect(facts(end)).toEqual({ ...exited, exitCode: -1, startError: 'ENOENT' });
      });

      test.each([
        [999, `${'x'.repeat(999)}+1`],
        [1_000, `${'x'.repeat(1_000)}+0`],
        [0, '+1000'],
      ])('has the first %i bytes of a stream', async (maxOutputBytes, stdout) => {
        const { open, programs } = await make();
        expect(facts(await open().run(task('a', programs.fills, { maxOutputBytes }), options))).toEqual({ ...exited, stdout });
      });

      test('at the deadline says so', async () => {
        const { open, programs } = await make();
        const end = await open().run(task('a', programs.waits, { timeoutMs: 100 }), options);
        expect(facts(end)).toEqual({ ...exited, exitCode: -1, signal: 9, timedOut: true });
      });
    });

    describe('A4: a task is started once, ever', () => {
      test('the second run tells the end of the first', async () => {
        const { open, programs } = await make();
        const first = await open().run(task('a', programs.differs), options);
        expect(await open().run(task('a', programs.differs), options)).toEqual(first);
        expect(await open().run(task('b', programs.differs), options)).not.toEqual(first);
      });

      test('of many at once one starts it', async () => {
        const { open, programs } = await make();
        const [one, other] = [open(), open()];
        const ends = await Promise.all([one, other, one, other].map((each) => each.run(task('a', programs.differs), options)));
        expect(new Set(ends.map(({ stdout }) => text(stdout))).size).toBe(1);
        expect(ends[0]?.stdout.bytes).not.toHaveLength(0);
      });

      test('a run waits for the one that runs', async () => {
        const { open, programs, runner, id, end } = await waiting();
        const second = open().run(task('waits', programs.waits), options);
        await runner.cancel(id, options);
        expect(await second).toEqual(await end);
      });
    });

    describe('A4: the state', () => {
      test('of a task that nobody ran is not_started', async () => {
        const { open } = await make();
        expect(await open().state(taskId('a'), options)).toEqual({ kind: 'not_started' });
      });

      test('is running, also for another process', async () => {
        const { open, id } = await waiting();
        expect(await open().state(id, options)).toEqual({ kind: 'running' });
      });

      test('is the end afterwards', async () => {
        const { open, programs } = await make();
        const end = await open().run(task('a', programs.says), options);
        expect(await open().state(taskId('a'), options)).toEqual(end);
      });
    });

    describe('adopting', () => {
      test('a task that nobody started is refused', async () => {
        const { open } = await make();
        await expect(open().adopt(taskId('a'), options)).rejects.toMatchObject({ code: 'instruction.not_started' });
      });

      test('waits for the end of another process’s task', async () => {
        const { open, runner, id, end } = await waiting();
        const adopted = open().adopt(id, options);
        await runner.cancel(id, options);
        expect(await adopted).toEqual(await end);
      });

      test('tells the end of one that has ended', async () => {
        const { open, programs } = await make();
        const end = await open().run(task('a', programs.says), options);
        expect(await open().adopt(taskId('a'), options)).toEqual(end);
      });
    });

    describe('A5: a task whose processes died', () => {
      test('is interrupted for whoever waits, and for ever', async () => {
        const { open, programs, interrupt, id, end } = await waiting();
        const adopted = open().adopt(id, options);
        adopted.catch(() => {});
        await interrupt(id);
        expect(await end).toMatchObject({ code: 'instruction.interrupted' });
        await expect(adopted).rejects.toMatchObject({ code: 'instruction.interrupted' });
        await expect(open().run(task('waits', programs.waits), options)).rejects.toMatchObject({
          code: 'instruction.interrupted',
        });
        expect(await open().state(id, options)).toEqual({ kind: 'interrupted' });
      });

      test('can be cancelled and forgotten', async () => {
        const { open, interrupt, id, end } = await waiting();
        await interrupt(id);
        await end;
        await open().cancel(id, options);
        await open().forget(id, options);
        expect(await open().state(id, options)).toEqual({ kind: 'not_started' });
      });
    });

    describe('A17: the tail of a stream', () => {
      test.each([
        ['all of it', 0, 5_000, 0, 1_000],
        ['what comes after', 900, 5_000, 900, 100],
        ['the newest of it', 0, 10, 990, 10],
        ['no more', 1_000, 5_000, 1_000, 0],
        ['further on than it is', 2_000, 5_000, 2_000, 0],
        ['nothing', 0, 0, 0, 0],
      ])('%s', async (_, from, most, begins, length) => {
        const { open, programs } = await make();
        await open().run(task('a', programs.fills), options);
        const tail = await open().tail(taskId('a'), { stream: 'stdout', from, most }, options);
        expect(tail.bytes).toHaveLength(length);
        if (length > 0) expect(tail.from).toBe(begins);
      });

      test('of the other stream, and of a task that nobody ran', async () => {
        const { open, programs } = await make();
        await open().run(task('a', programs.says), options);
        const wanted = { stream: 'stderr', from: 0, most: 100 } as const;
        expect(new TextDecoder().decode((await open().tail(taskId('a'), wanted, options)).bytes)).toBe('err');
        expect((await open().tail(taskId('b'), wanted, options)).bytes).toHaveLength(0);
      });
    });

    describe('cancelling', () => {
      test('kills it', async () => {
        const { runner, id, end } = await waiting();
        await runner.cancel(id, options);
        const exit = (await runner.state(id, options)) as TaskExit;
        expect(facts(exit)).toEqual({ ...exited, exitCode: -1, signal: 9, cancelled: true });
        expect(await end).toEqual(exit);
      });

      test('works while it is being started', async () => {
        const { open, programs } = await make();
        const runner = open();
        const end = runner.run(task('waits', programs.waits), options);
        await runner.cancel(taskId('waits'), options);
        expect(await end).toMatchObject({ cancelled: true, signal: 9 });
      });

      test('does nothing to one that has ended or is not there', async () => {
        const { open, programs } = await make();
        const end = await open().run(task('a', programs.says), options);
        await open().cancel(taskId('a'), options);
        await open().cancel(taskId('b'), options);
        expect(await open().state(taskId('a'), options)).toEqual(end);
        expect(await open().list(options)).toEqual([taskId('a')]);
      });
    });

    describe('the list', () => {
      test('has every task until it is forgotten', async () => {
        const { open, programs } = await make();
        expect(await open().list(options)).toEqual([]);
        await open().run(task('a', programs.says), options);
        await open().run(task('b', programs.falls), options);
        expect(await open().list(options)).toEqual([taskId('a'), taskId('b')].sort());
        await open().forget(taskId('a'), options);
        await open().forget(taskId('a'), options);
        expect(await open().list(options)).toEqual([taskId('b')]);
      });

      test('a task that runs is not forgotten', async () => {
        const { open, id } = await waiting();
        await expect(open().forget(id, options)).rejects.toMatchObject({ code: 'instruction.running' });
        expect(await open().state(id, options)).toEqual({ kind: 'running' });
      });

      test('what is forgotten may be run again', async () => {
        const { open, programs } = await make();
        const first = await open().run(task('a', programs.differs), options);
        await open().forget(taskId('a'), options);
        expect(await open().run(task('a', programs.differs), options)).not.toEqual(first);
      });
    });

    describe('an abort', () => {
      test('ends the waiting, not the task', async () => {
        const { open, programs } = await make();
        const runner = open();
        const aborting = new AbortController();
        const run = runner.run(task('waits', programs.waits), { signal: aborting.signal });
        run.catch(() => {});
        onTestFinished(() => runner.cancel(taskId('waits'), options));
        await expect.poll(async () => (await runner.state(taskId('waits'), options)).kind).toBe('running');
        const adopted = open().adopt(taskId('waits'), { signal: aborting.signal });
        aborting.abort(new Error('enough'));
        await expect(run).rejects.toThrow('enough');
        await expect(adopted).rejects.toThrow('enough');
        expect(await runner.state(taskId('waits'), options)).toEqual({ kind: 'running' });
      });

      test('before the call does nothing', async () => {
        const { open, programs } = await make();
        const runner = open();
        const aborted = { signal: AbortSignal.abort(new Error('enough')) };
        for (const call of [
          () => runner.run(task('a', programs.says), aborted),
          () => runner.adopt(taskId('a'), aborted),
          () => runner.state(taskId('a'), aborted),
          () => runner.tail(taskId('a'), { stream: 'stdout', from: 0, most: 1 }, aborted),
          () => runner.cancel(taskId('a'), aborted),
          () => runner.list(aborted),
          () => runner.forget(taskId('a'), aborted),
        ]) {
          await expect(call()).rejects.toThrow('enough');
        }
        expect(await runner.list(options)).toEqual([]);
      });
    });
  });
}
