import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { NativeTaskRunner } from '../../src/adapters/instruction/native-task-runner.js';
import { runnerPath } from '../../src/adapters/instruction/runner-process.js';
import type { TaskId } from '../../src/ports/instruction/task-runner.js';
import { tempFolder } from './temp-folder.js';

export interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly arguments: readonly string[];
  readonly environment: readonly string[];
}

/** What can be read of every process. */
export function processes(): readonly ProcessFacts[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const read = (file: string) => readFileSync(join('/proc', name, file), 'latin1');
        const stat = read('stat');
        const [state = '', parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const split = (file: string) => read(file).split('\0').slice(0, -1);
        return [{ pid: Number(name), parent: Number(parent), state, arguments: split('cmdline'), environment: split('environ') }];
      } catch {
        return []; // it has ended meanwhile
      }
    });
}

/** The two runner processes of a task, as the kernel names them: each holds its byte of the lock. */
export function runnersOf(
  runs: string,
  id: TaskId,
): { readonly keeper: number | undefined; readonly supervisor: number | undefined } {
  const inode = statSync(join(runs, id, 'lock'), { throwIfNoEntry: false })?.ino;
  const locks = readFileSync('/proc/locks', 'latin1').split('\n');
  const holder = (byte: number) => {
    const lock = locks.find((line) => line.includes(' POSIX ') && line.endsWith(`:${inode} ${byte} ${byte}`));
    return lock === undefined ? undefined : Number(lock.split(/\s+/)[4]);
  };
  return { keeper: holder(0), supervisor: holder(1) };
}

/** Everything that was started with the task's mark, the runner not among it. */
export function programsOf(runs: string, id: TaskId): readonly ProcessFacts[] {
  const mark = `HOLDFAST_TASK=${join(realpathSync(runs), id)}`;
  return processes().filter(({ environment, state }) => environment.includes(mark) && state !== 'Z');
}

export interface TaskRig {
  readonly folder: string;
  readonly runs: string;
  readonly open: () => NativeTaskRunner;
  readonly kill: (id: TaskId, who: readonly ('keeper' | 'supervisor')[], signal?: NodeJS.Signals) => void;
}

/** Real runners in a folder of the running test. */
export async function taskRig(): Promise<TaskRig> {
  const folder = await tempFolder();
  const runs = join(folder, 'run');
  const open = () => new NativeTaskRunner({ folder: runs, runnerPath: runnerPath(process.env.HOLDFAST_RUNNER) });
  const kill: TaskRig['kill'] = (id, who, signal = 'SIGKILL') => {
    const pids = runnersOf(runs, id);
    for (const each of who) {
      const pid = pids[each];
      if (pid === undefined) throw new Error(`there is no ${each} of ${id}`);
      process.kill(pid, signal);
    }
  };
  return { folder, runs, open, kill };
}
