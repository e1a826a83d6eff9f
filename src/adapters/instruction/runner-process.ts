import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CallOptions } from '../../ports/call-options.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';
import { unlessAborted } from './unless-aborted.js';

/** From `dist/adapters/instruction` and from `src/adapters/instruction` alike. */
const packageRoot = resolve(import.meta.dirname, '../../..');

/** `override` is what HOLDFAST_RUNNER says. It is built beside the addon. */
export function runnerPath(override: string | undefined): string {
  return override === undefined || override === '' ? join(packageRoot, 'build/Release/holdfast-runner') : resolve(override);
}

/** Where systemd runs, a task gets a scope of its own, so that stopping the agent's unit does not stop it. */
export function systemdRunPath(): string | undefined {
  return existsSync('/run/systemd/system') ? 'systemd-run' : undefined;
}

/** The runner needs no environment, systemd-run only its own program. */
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

interface Output {
  /** `started`, `already`; `running`, `settled`; or empty: it has not done what it was to do. */
  readonly answer: string;
  /** Why not. */
  readonly complaint: string;
}

/** What a runner says, and its end. */
export interface StartedRunner extends Output {
  /** Resolves when it ends; rejects on abort, and the runner goes on. */
  ended(options: CallOptions): Promise<void>;
}

/** How native/runner/main.cc is called. */
export class RunnerProgram {
  readonly #path: string;
  readonly #runs: string;
  readonly #systemdRun: string | undefined;

  constructor({
    path,
    runs,
    systemdRun,
  }: { readonly path: string; readonly runs: string; readonly systemdRun: string | undefined }) {
    this.#path = path;
    this.#runs = runs;
    this.#systemdRun = systemdRun;
  }

  /** Starts a task, in a scope if possible. Rejects when no runner could be executed. */
  async start(id: TaskId, task: Buffer): Promise<StartedRunner> {
    const command = [this.#path, 'start', this.#runs, id] as const;
    if (this.#systemdRun !== undefined) {
      const scope = ['--scope', '--quiet', '--collect', '--unit', `holdfast-task-${id}`, '--', ...command];
      const started = await startRunner(this.#systemdRun, scope, task).catch(() => undefined);
      if (started !== undefined && started.answer !== '') return started;
      // No bus, or a unit of that name: starting is done once whoever asks, so it may be asked for again.
    }
    const [path, ...args] = command;
    return startRunner(path, args, task);
  }

  /** Whether the task runs. If not, nothing of it is left. */
  async isRunning(id: TaskId, options: CallOptions): Promise<boolean> {
    return (await this.#ask('state', id, options)) === 'running';
  }

  /** Resolves when nothing of it is left. */
  async wait(id: TaskId, options: CallOptions): Promise<void> {
    await this.#ask('wait', id, options);
  }

  /** Kills it; resolves when nothing of it is left. */
  async cancel(id: TaskId, options: CallOptions): Promise<void> {
    await this.#ask('cancel', id, options);
  }

  async #ask(mode: 'state' | 'wait' | 'cancel', id: TaskId, { signal }: CallOptions): Promise<string> {
    signal.throwIfAborted();
    const child = spawn(this.#path, [mode, this.#runs, id], { stdio: ['ignore', 'pipe', 'pipe'], env: {} });
    try {
      const { answer, complaint } = await unlessAborted(outputOf(child), signal);
      if (answer === '') throw new Error(`${mode} failed: ${complaint}`);
      return answer;
    } finally {
      if (signal.aborted) child.kill('SIGKILL');
    }
  }
}

async function startRunner(path: string, args: readonly string[], task: Buffer): Promise<StartedRunner> {
  const child: ChildProcess = spawn(path, args, { detached: true, stdio: 'pipe', env: environment, cwd: '/' });
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  // Its side is open until the answer: a runner that nobody listens to starts nothing. It may end before it has read all.
  child.stdin?.on('error', () => {});
  child.stdin?.write(task);
  const output = await outputOf(child);
  child.stdin?.destroy();
  // The daemon may end before the task.
  child.unref();
  return {
    ...output,
    async ended({ signal }) {
      signal.throwIfAborted();
      child.ref();
      try {
        await unlessAborted(exit, signal);
      } finally {
        child.unref();
      }
    },
  };
}

/** Until it closes both, which a runner does when it has answered. Rejects when it could not be executed. */
function outputOf(child: ChildProcess): Promise<Output> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    // Without descriptors for streams there are none, and the error is on its way.
    if (!child.stdout || !child.stderr) return;
    Promise.all([text(child.stdout), text(child.stderr)]).then(
      ([answer, complaint]) => resolve({ answer: answer.trim(), complaint: complaint.trim() }),
      reject,
    );
  });
}
