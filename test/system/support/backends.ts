import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/**
 * A TCP server in a process of its own. `greet` says its port as a line to everybody who sends something, then closes; `stream` sends without
 * end; `echo` sends back what comes.
 */
export class Backend {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async start(kind: 'greet' | 'stream' | 'echo' = 'greet'): Promise<Backend> {
    const child = fork(join(import.meta.dirname, 'backend-process.mjs'), [kind], { execArgv: [], stdio: 'inherit' });
    const [port] = await once(child, 'message');
    return new Backend(Number(port), child);
  }

  /** Takes no new connection, and answers those that it has. */
  async retire(): Promise<void> {
    this.#child.send('retire');
    await once(this.#child, 'message');
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
