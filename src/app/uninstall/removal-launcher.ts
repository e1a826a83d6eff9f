import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Task, TaskRunner } from '../../ports/instruction/task-runner.js';

/** Between looks at whether it has begun. */
const LOOK_MS = 20;

/**
 * Starts the program that removes this node, under a runner of its own: in a scope where systemd runs, so that it outlives the agent, which
 * it stops. Its name is fixed, so that there is one at a time.
 */
export class RemovalLauncher {
  readonly #tasks: TaskRunner;
  readonly #task: Task;
  readonly #clock: Clock;

  constructor(tasks: TaskRunner, task: Task, clock: Clock) {
    this.#tasks = tasks;
    this.#task = task;
    this.#clock = clock;
  }

  /** Resolves when it runs; one that was cut off is begun anew. @throws AgentError `instruction.not_started`, `instruction.runner_failed` */
  async launch(options: CallOptions): Promise<void> {
    const { kind } = await this.#tasks.state(this.#task.id, options);
    if (kind === 'running') return;
    if (kind !== 'not_started') await this.#tasks.forget(this.#task.id, options);
    // Whoever waits for its end would hold up the end of this process, for which it waits.
    const waiting = new AbortController();
    let over: { readonly error: unknown } | undefined;
    this.#tasks.run(this.#task, { signal: waiting.signal }).then(
      () => {
        over = { error: undefined };
      },
      (error: unknown) => {
        over = { error };
      },
    );
    try {
      while ((await this.#tasks.state(this.#task.id, options)).kind === 'not_started') {
        if (over !== undefined) throw over.error;
        await this.#clock.sleep(LOOK_MS, options);
      }
    } finally {
      waiting.abort();
    }
  }
}
