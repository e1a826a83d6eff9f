import { type Answer, errorAnswer, NO_CONTENT } from '../../domain/instruction/model.js';
import { failureText, type KubernetesPlan, kubectlAnswer, type ProgramEnd } from '../../domain/kubernetes/model.js';
import { OWN_GROUP_VERSION } from '../../domain/kubernetes/names.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Command } from '../../ports/command/command-runner.js';
import type { TaskExit, TaskId } from '../../ports/instruction/task-runner.js';
import { CANCELLED_RUNNING } from '../instruction/script-effect.js';
import type { ClusterPrograms } from './cluster-programs.js';

interface Context extends CallOptions {
  readonly task: TaskId;
}

/** What kubectl does for an instruction. */
export class KubernetesEffect {
  readonly #programs: ClusterPrograms;

  constructor(programs: ClusterPrograms) {
    this.#programs = programs;
  }

  /** @throws AgentError `command.*`, `instruction.*` */
  async run(plan: KubernetesPlan, { task, signal }: Context): Promise<Answer> {
    switch (plan.do) {
      case 'kubernetes_apply':
        // By standard input: what it holds is on no disk and in no list of processes.
        return this.#quiet(['apply', '-f', '-'], { stdin: plan.yaml, timeoutMs: plan.timeoutMs }, { signal });
      case 'kubernetes_delete': {
        const { resource, id, timeoutMs } = plan;
        const argv = ['delete', `${resource}.${OWN_GROUP_VERSION}`, id, '-n', id, '--ignore-not-found'];
        return this.#quiet(argv, { timeoutMs }, { signal });
      }
      case 'kubectl':
        return kubectlAnswer(await this.#kubectl(plan.argv, { timeoutMs: plan.timeoutMs }, { signal }), plan.verb);
      case 'kubectl_once':
        return kubectlTaskAnswer(
          await this.#programs.task({ id: task, argv: ['kubectl', ...plan.argv], timeoutMs: plan.timeoutMs }, { signal }),
        );
    }
  }

  async #quiet(argv: readonly string[], how: Omit<Command, 'argv'>, options: CallOptions): Promise<Answer> {
    const end = await this.#kubectl(argv, how, options);
    return end.exitCode === 0 ? NO_CONTENT : errorAnswer(failureText('kubectl', end));
  }

  #kubectl(argv: readonly string[], how: Omit<Command, 'argv'>, options: CallOptions) {
    return this.#programs.run({ ...how, argv: ['kubectl', ...argv] }, options);
  }
}

/** Also of one that an earlier process has started. */
export function kubectlTaskAnswer({ cancelled, exitCode, timedOut, startError, stdout, stderr }: TaskExit): Answer {
  return cancelled
    ? errorAnswer(CANCELLED_RUNNING)
    : kubectlAnswer(programEnd({ exitCode, timedOut, startError, stdout, stderr }), '');
}

/** Output that is no UTF-8 has U+FFFD in its place. */
export function programEnd({
  exitCode,
  timedOut,
  startError,
  stdout,
  stderr,
}: Omit<TaskExit, 'kind' | 'signal' | 'cancelled'>): ProgramEnd {
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const own = startError === undefined ? '' : `it could not be started: ${startError}`;
  return {
    exitCode,
    timedOut,
    stdout: text(stdout.bytes),
    stderr: own + text(stderr.bytes),
    dropped: stdout.dropped + stderr.dropped,
  };
}
