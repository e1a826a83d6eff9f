import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../../..');
export const holdfast = join(root, 'bin/holdfast');
const START_MS = 30_000;

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A `holdfast dev` of its own, as users start it. */
export class Daemon {
  readonly dataDir: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  stderr = '';

  constructor(dataDir: string, { env = {}, flags = [] }: { env?: NodeJS.ProcessEnv; flags?: readonly string[] } = {}) {
    this.dataDir = dataDir;
    this.#env = env;
    this.#flags = flags;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the daemon does not run');
    return pid;
  }

  /** Resolves when it says that it is ready. */
  async start(): Promise<void> {
    const range = ['--vip-range', vipRangeOf(this.dataDir)];
    const quiet = ['--metrics-listen', 'off', '--dns-listen', 'off', '--log-level', 'warn'];
    const args = ['dev', '--data-dir', this.dataDir, ...quiet, ...range, ...this.#flags];
    const child = spawn(holdfast, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...this.#env } });
    this.#child = child;
    this.stderr = '';
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`not ready after ${START_MS} ms: ${this.stderr}`)), START_MS);
      child.stderr.on('data', (chunk: Buffer) => {
        this.stderr += chunk.toString();
        if (this.stderr.includes('is ready')) resolve();
      });
      child.once('exit', (code, signal) => reject(new Error(`the daemon ended with ${code ?? signal}: ${this.stderr}`)));
      child.once('exit', () => clearTimeout(timer));
    });
  }

  /** Ends it as it asks for, or at once. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = await exited;
    return code;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** A verb of the CLI against this daemon; it never throws for an exit code. */
  cli(args: readonly string[], input?: string): Promise<CliResult> {
    return runCli([...args, '--data-dir', this.dataDir], input);
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.cli([...args, '-o', 'json']);
    if (code !== 0 && code !== 4) throw new Error(`holdfast ${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** @throws Error when it is refused */
  async apply(manifest: string): Promise<{ readonly revision: number }> {
    const { code, stdout, stderr } = await this.cli(['apply', '-f', '-', '-o', 'json'], manifest);
    if (code !== 0) throw new Error(`apply ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }
}

/** A range of its own for each data directory, as daemons beside each other would move each other's ports. */
function vipRangeOf(dataDir: string): string {
  const [first = 0, second = 0] = createHash('sha256').update(dataDir).digest();
  return `127.${1 + (first % 126)}.${second & 0xc0}.0/18`;
}

/** @param within a command that runs it, such as `ip netns exec NAME` */
export async function runCli(args: readonly string[], input?: string, within: readonly string[] = []): Promise<CliResult> {
  const [program = holdfast, ...argv] = [...within, holdfast, ...args];
  const running = promisify(execFile)(program, argv, { maxBuffer: 256 * 1024 * 1024 });
  running.child.stdin?.on('error', () => {});
  running.child.stdin?.end(input ?? '');
  try {
    return { code: 0, ...(await running) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

export async function temporaryFolder(): Promise<{ readonly path: string; [Symbol.asyncDispose](): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'holdfast-system-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Runs `use` with a started daemon on a folder of its own; both are gone afterwards. */
export async function withDaemon<T>(
  use: (daemon: Daemon) => Promise<T>,
  options: { env?: NodeJS.ProcessEnv; flags?: readonly string[] } = {},
): Promise<T> {
  await using folder = await temporaryFolder();
  const daemon = new Daemon(join(folder.path, 'data'), options);
  try {
    await daemon.start();
    return await use(daemon);
  } finally {
    await daemon.stop('SIGKILL');
  }
}
