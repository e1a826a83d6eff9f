import type { CallOptions } from '../../ports/call-options.js';
import type { Command, CommandResult, CommandRunner } from '../../ports/command/command-runner.js';
import type { Task, TaskExit, TaskRunner } from '../../ports/instruction/task-runner.js';

export interface ClusterProgramsParts {
  readonly commands: CommandRunner;
  readonly tasks: TaskRunner;
  /** The kubeconfig of this node. */
  readonly kubeconfig: string;
  /** The whole environment of a task. */
  readonly env: Readonly<Record<string, string>>;
}

/** Of each stream. */
const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

type ClusterTask = Pick<Task, 'id' | 'argv' | 'timeoutMs'> & Partial<Pick<Task, 'files'>>;

/** Programs that work on the cluster of this node as its administrator: kubectl, helm, kubeadm. */
export class ClusterPrograms {
  readonly kubeconfig: string;
  readonly #parts: ClusterProgramsParts;

  constructor(parts: ClusterProgramsParts) {
    this.kubeconfig = parts.kubeconfig;
    this.#parts = parts;
  }

  /** What may be repeated. @throws AgentError `command.*` */
  run(command: Command, options: CallOptions): Promise<CommandResult> {
    const { commands, kubeconfig } = this.#parts;
    return commands.run({ maxOutputBytes: MAX_OUTPUT_BYTES, ...command, env: { KUBECONFIG: kubeconfig } }, options);
  }

  /** What outlives this process. @throws AgentError `instruction.*` */
  task({ id, argv, timeoutMs, files = {} }: ClusterTask, options: CallOptions): Promise<TaskExit> {
    const { tasks, kubeconfig, env } = this.#parts;
    return tasks.run(
      {
        // A runner takes absolute paths: `env` finds the program in PATH.
        ...{ id, argv: ['/usr/bin/env', ...argv], env: { ...env, KUBECONFIG: kubeconfig }, cwd: '/' },
        ...{ files, timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES },
      },
      options,
    );
  }
}
