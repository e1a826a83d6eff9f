import { classifyFault } from '../../domain/install/faults.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { ProgramEnd } from '../../domain/kubernetes/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Task, TaskId, TaskRunner } from '../../ports/instruction/task-runner.js';
import { stepTaskId } from '../instruction/task-id.js';
import { programEnd } from './kubernetes-effect.js';

/** Between the tries of what needs the network. */
export const NETWORK_WAITS_MS = [5_000, 15_000, 45_000] as const;
/** Whatever kills a runner this often would kill it again. */
const MOST_INTERRUPTIONS = 2;
const MAX_OUTPUT_BYTES = 256 * 1024;
const INTERRUPTED: ProgramEnd = { exitCode: -1, timedOut: false, stdout: '', stderr: 'it was interrupted', dropped: 0 };

export interface StepTasksParts {
  readonly tasks: TaskRunner;
  readonly clock: Clock;
  readonly sha256: (text: string) => string;
  /** The whole environment of a program. */
  readonly env: Readonly<Record<string, string>>;
}

export interface StepTask {
  /** Of the work that it is a step of: the same in every process. */
  readonly work: TaskId;
  /** Of the step, once in its work. */
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  readonly timeoutMs: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Task['files'];
  /** Before each further try, milliseconds; none unless given. What would fail again is not tried again. */
  readonly waitsMs?: readonly number[];
  readonly onRetry?: (problem: string, waitMs: number) => void;
}

/**
 * Programs that are steps of a longer work. Each goes on when this process dies, and the next one learns its end instead of running it a
 * second time.
 */
export class StepTasks {
  readonly #parts: StepTasksParts;

  constructor(parts: StepTasksParts) {
    this.#parts = parts;
  }

  /** Of its newest try, by whichever process. */
  async state({ work, name }: Pick<StepTask, 'work' | 'name'>, options: CallOptions): Promise<'not_begun' | 'running' | 'over'> {
    for (let nth = 0, newest: 'not_begun' | 'running' | 'over' = 'not_begun'; ; nth++) {
      const { kind } = await this.#parts.tasks.state(this.#id(work, name, nth), options);
      if (kind === 'not_started') return newest;
      newest = kind === 'running' ? 'running' : 'over';
    }
  }

  /** Resolves with the end of its last try. On abort it goes on. @throws AgentError `instruction.not_started`, `instruction.runner_failed` */
  async run(step: StepTask, { signal }: CallOptions): Promise<ProgramEnd> {
    const waits = [...(step.waitsMs ?? [])];
    let interruptions = 0;
    for (let nth = 0; ; nth++) {
      const end = await this.#once(step, nth, signal);
      if (end === INTERRUPTED && ++interruptions < MOST_INTERRUPTIONS) continue;
      const fault = classifyFault(`${end.stdout}\n${end.stderr}`);
      const wait = end.exitCode === 0 || !fault.passes ? undefined : waits.shift();
      if (wait === undefined) return end;
      step.onRetry?.(fault.cause, wait);
      await this.#parts.clock.sleep(wait, { signal });
    }
  }

  async #once({ work, name, argv, timeoutMs, env, files = {} }: StepTask, nth: number, signal: AbortSignal): Promise<ProgramEnd> {
    const { tasks, env: common } = this.#parts;
    const task: Task = {
      // A runner takes absolute paths: `env` finds the program in PATH.
      ...{ id: this.#id(work, name, nth), argv: ['/usr/bin/env', ...argv], env: { ...common, ...env }, cwd: '/' },
      ...{ files, timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES },
    };
    try {
      return programEnd(await tasks.run(task, { signal }));
    } catch (error) {
      if (error instanceof AgentError && error.code === 'instruction.interrupted') return INTERRUPTED;
      throw error;
    }
  }

  #id(work: TaskId, name: string, nth: number): TaskId {
    return stepTaskId(work, `${name} ${nth}`, this.#parts.sha256);
  }
}
