import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const STOP_MS = 3_000;

export interface Child {
  readonly name: string;
  readonly pid: number;
  running(): boolean;
  /** The end of what it printed. */
  said(): string;
  stop(): Promise<void>;
}

export interface Output {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `command` inside a network namespace; it gets SIGTERM when this process dies, however it dies. */
export function inside(namespace: string, command: readonly string[]): string[] {
  return ['ip', 'netns', 'exec', namespace, 'setpriv', '--pdeathsig', 'TERM', ...command];
}

/** The processes that the rig starts and ends: peers and back ends, each in a process group of its own. */
export class Children implements AsyncDisposable {
  readonly #logs: string;
  readonly #running = new Set<Child>();

  constructor(logs: string) {
    this.#logs = logs;
  }

  start(name: string, [program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv = {}): Child {
    const log = join(this.#logs, `${name}.log`);
    const descriptor = openSync(log, 'w');
    const options = { detached: true, env: { ...process.env, ...env } };
    const process_ = spawn(program, args, { ...options, stdio: ['ignore', descriptor, descriptor] });
    closeSync(descriptor);
    process_.on('error', () => {});
    const child: Child = {
      name,
      pid: process_.pid ?? -1,
      running: () => isRunning(process_),
      said: () => readFileSync(log, 'utf8').slice(-2_000),
      stop: async () => {
        await stopGroup(process_);
        this.#running.delete(child);
      },
    };
    this.#running.add(child);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.stop()));
  }
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

async function stopGroup(child: ChildProcess): Promise<void> {
  if (!isRunning(child) || child.pid === undefined) return;
  const exited = once(child, 'exit');
  process.kill(-child.pid, 'SIGTERM');
  const patient = new AbortController();
  await Promise.race([exited, sleep(STOP_MS, undefined, { signal: patient.signal })]).finally(() => patient.abort());
  if (isRunning(child)) process.kill(-child.pid, 'SIGKILL');
  await exited;
}

/** Runs a command to its end. */
export async function run([program = '', ...args]: readonly string[], timeoutMs = 60_000): Promise<Output> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: timeoutMs, killSignal: 'SIGKILL' });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = await once(child, 'close');
  return { code, stdout, stderr };
}

/** @throws Error with what the command said, unless it ends with 0 */
export async function must(command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}
