import { join } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type {
  TailRequest,
  Task,
  TaskExit,
  TaskId,
  TaskRunner,
  TaskState,
  TaskTail,
} from '../../ports/instruction/task-runner.js';
import { ensureFolder } from '../files/durable-file.js';
import { RunnerProgram, type StartedRunner } from './runner-process.js';
import { encodeTask } from './task-codec.js';
import { isTaskId, listTasks, TaskFolder } from './task-folder.js';
import { unlessAborted } from './unless-aborted.js';

export interface NativeTaskRunnerOptions {
  /** Absolute path of the folder of all tasks; made when the first is run. */
  readonly folder: string;
  /** The program `holdfast-runner`, absolute. */
  readonly runnerPath: string;
  /** The program that puts a task into a scope of its own; undefined where systemd does not run. */
  readonly systemdRun?: string | undefined;
}

/**
 * Tasks in folders, under runners that outlive this process (native/runner). What a folder says is the truth, and who holds its lock is
 * alive: nothing is remembered here. Unless an abort is the cause, what the system refuses is `instruction.runner_failed`.
 */
export class NativeTaskRunner implements TaskRunner {
  readonly #runs: string;
  readonly #program: RunnerProgram;
  /** Runners that have not answered yet: for the moment their folders say too little. */
  readonly #starts = new Map<TaskId, Promise<StartedRunner | undefined>>();

  constructor({ folder, runnerPath, systemdRun }: NativeTaskRunnerOptions) {
    this.#runs = folder;
    this.#program = new RunnerProgram({ path: runnerPath, runs: folder, systemdRun });
  }

  run(task: Task, options: CallOptions): Promise<TaskExit> {
    return translated(options, async () => {
      options.signal.throwIfAborted();
      const folder = this.#folder(task.id);
      const runner = await unlessAborted(this.#starts.get(task.id) ?? this.#start(task, folder), options.signal);
      if (runner?.answer === 'started') await runner.ended(options);
      // Another one has started it meanwhile, or is about to.
      if (runner?.answer === 'already') await this.#program.wait(task.id, options);
      if (runner?.answer === '' && !(await folder.hasStarted())) throw notStarted(task.id, runner.complaint);
      return this.#end(task.id, folder, options);
    });
  }

  adopt(id: TaskId, options: CallOptions): Promise<TaskExit> {
    return translated(options, async () => this.#end(id, await this.#settledFolder(id, options), options));
  }

  state(id: TaskId, options: CallOptions): Promise<TaskState> {
    return translated(options, async () => this.#state(id, await this.#settledFolder(id, options), options));
  }

  tail(id: TaskId, wanted: TailRequest, { signal }: CallOptions): Promise<TaskTail> {
    return translated({ signal }, async () => {
      signal.throwIfAborted();
      return this.#folder(id).tail(wanted);
    });
  }

  cancel(id: TaskId, options: CallOptions): Promise<void> {
    return translated(options, async () => {
      const folder = await this.#settledFolder(id, options);
      if (await folder.hasStarted()) await this.#program.cancel(id, options);
    });
  }

  list({ signal }: CallOptions): Promise<readonly TaskId[]> {
    return translated({ signal }, async () => {
      signal.throwIfAborted();
      return listTasks(this.#runs);
    });
  }

  forget(id: TaskId, options: CallOptions): Promise<void> {
    return translated(options, async () => {
      const folder = await this.#settledFolder(id, options);
      const { kind } = await this.#state(id, folder, options);
      if (kind === 'running') throw new AgentError('instruction.running', { task: id });
      await folder.remove();
    });
  }

  #folder(id: TaskId): TaskFolder {
    if (!isTaskId(id)) throw notStarted(id, `${id} is no task's name: 64 hexadecimal digits`);
    return new TaskFolder(this.#runs, id);
  }

  /** After the answer of a runner that is being started. */
  async #settledFolder(id: TaskId, { signal }: CallOptions): Promise<TaskFolder> {
    signal.throwIfAborted();
    const start = this.#starts.get(id);
    if (start !== undefined) await unlessAborted(start, signal).catch(() => signal.throwIfAborted());
    return this.#folder(id);
  }

  #start(task: Task, folder: TaskFolder): Promise<StartedRunner | undefined> {
    const start = this.#startOnce(task, folder).finally(() => this.#starts.delete(task.id));
    this.#starts.set(task.id, start);
    return start;
  }

  /** Undefined when it has been started before. */
  async #startOnce(task: Task, folder: TaskFolder): Promise<StartedRunner | undefined> {
    try {
      if (await folder.hasStarted()) return undefined;
      await ensureFolder(this.#runs);
      return await this.#program.start(task.id, encodeTask({ ...task, argv: withPaths(task, folder) }));
    } catch (cause) {
      if (cause instanceof AgentError) throw cause;
      throw notStarted(task.id, `the task runner cannot be started: ${messageOf(cause)}`, cause);
    }
  }

  async #state(id: TaskId, folder: TaskFolder, options: CallOptions): Promise<TaskState> {
    const exit = await folder.exit(options);
    if (exit !== undefined) return exit;
    if (!(await folder.hasStarted())) return { kind: 'not_started' };
    if (await this.#program.isRunning(id, options)) return { kind: 'running' };
    // It may have ended since the first look.
    return (await folder.exit(options)) ?? { kind: 'interrupted' };
  }

  async #end(id: TaskId, folder: TaskFolder, options: CallOptions): Promise<TaskExit> {
    const exit = await folder.exit(options);
    if (exit !== undefined) return exit;
    if (!(await folder.hasStarted())) throw notStarted(id, `nothing has started task ${id}`);
    await this.#program.wait(id, options);
    const end = await folder.exit(options);
    if (end === undefined) throw new AgentError('instruction.interrupted', { task: id });
    return end;
  }
}

/** `%f/<name>` is a path only where it names one of the task's files: programs have percent signs of their own. */
function withPaths({ argv: [program, ...args], files }: Task, { path }: TaskFolder): [string, ...string[]] {
  // The longer first, since one name may begin another.
  const names = Object.keys(files).sort((a, b) => b.length - a.length);
  const replaced = (text: string) =>
    names.reduce((rest, name) => rest.replaceAll(`%f/${name}`, () => join(path, 'files', name)), text);
  return [replaced(program), ...args.map(replaced)];
}

function notStarted(task: TaskId, problem: string, cause?: unknown): AgentError {
  return new AgentError('instruction.not_started', { task, problem }, { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function translated<T>({ signal }: CallOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof AgentError) throw cause;
    throw new AgentError('instruction.runner_failed', { problem: messageOf(cause) }, { cause });
  }
}
