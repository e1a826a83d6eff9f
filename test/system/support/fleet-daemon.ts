import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { GrpcAdminClient } from '../../../src/adapters/admin/grpc-admin-client.js';
import { type CliResult, holdfast, runCli } from './daemon.js';
import { type NetworkSpace, spawnIn } from './fleet-network.js';

const START_MS = 45_000;
const options = { signal: new AbortController().signal };

export interface FleetDaemonParts {
  readonly verb: 'server' | 'agent';
  readonly space: NetworkSpace;
  /** Prefix of all its paths: several daemons on one machine are several machines. */
  readonly root: string;
  readonly flags: readonly string[];
  /** Put before the program: it must become it, as `unshare` does. */
  readonly within?: readonly string[] | undefined;
}

/** `holdfast server` or `holdfast agent`, in a namespace of a fleet. */
export class FleetDaemon {
  readonly dataDir: string;
  readonly #parts: FleetDaemonParts;
  #child: ChildProcess | undefined;
  stderr = '';

  constructor(parts: FleetDaemonParts) {
    this.#parts = parts;
    this.dataDir = `${parts.root}/data`;
  }

  get space(): NetworkSpace {
    return this.#parts.space;
  }

  get root(): string {
    return this.#parts.root;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the daemon does not run');
    return pid;
  }

  /** Resolves when it says that it is ready, or what else it is to say. */
  async start(says: RegExp = /is ready/): Promise<void> {
    const { verb, space, root, flags, within = [] } = this.#parts;
    const argv = [...within, holdfast, verb, '--root', root, '--data-dir', '/data', ...flags];
    // Of agents alone: the control sockets of their overlays have one folder on a machine.
    const child = spawnIn(space, verb === 'agent' ? withOwnSockets(argv) : argv, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    this.stderr = '';
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`it does not say ${says} after ${START_MS} ms: ${this.stderr}`)), START_MS);
      child.stderr?.on('data', (chunk: Buffer) => {
        this.stderr += chunk.toString();
        if (says.test(this.stderr)) resolve();
      });
      child.once('exit', (code, signal) => {
        clearTimeout(timer);
        reject(new Error(`${verb} ended with ${code ?? signal}: ${this.stderr}`));
      });
    });
  }

  /** A start that is to be refused: its exit code and what it said. */
  async refusedStart(): Promise<{ readonly code: number | null; readonly stderr: string }> {
    await this.start().catch(() => {});
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      await this.stop('SIGKILL');
      throw new Error(`it was not refused: ${this.stderr}`);
    }
    return { code: child?.exitCode ?? null, stderr: this.stderr };
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = await exited;
    return code;
  }

  cli(args: readonly string[], input?: string): Promise<CliResult> {
    return runCli([...args, '--data-dir', this.dataDir], input);
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.cli([...args, '-o', 'json']);
    if (code !== 0 && code !== 4) throw new Error(`holdfast ${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** The admin API without a process of the CLI per call; a connection of its own, as a client that saw its server die waits before it tries again. */
  async ask<T>(use: (client: GrpcAdminClient, given: typeof options) => Promise<T>): Promise<T> {
    const client = new GrpcAdminClient(`${this.dataDir}/admin/admin.sock`);
    try {
      return await use(client, options);
    } finally {
      client.close();
    }
  }

  /** From its next start on. */
  async configure(yaml: string): Promise<void> {
    await writeFile(`${this.dataDir}/holdfast.yaml`, yaml);
  }

  /** Problems of `status`, as `SUBJECT: REASON`. */
  async problems(): Promise<readonly string[]> {
    const { problems } = await this.ask((client, given) => client.status(given));
    return problems.map(({ subject, reason }) => `${subject}: ${reason}`);
  }
}

/** A program whose mounts are its own has a folder of its own there. */
function withOwnSockets(argv: readonly string[]): readonly string[] {
  const folder = '/var/run/wireguard';
  return ['sh', '-c', `mkdir -p ${folder} && mount -t tmpfs tmpfs ${folder} && exec "$@"`, 'sh', ...argv];
}

/** Asks until it is what is wanted. @throws Error with the last answer when it is not within the time */
export async function until<T>(probe: () => Promise<T>, isGood: (value: T) => boolean, withinMs = 30_000): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    const value = await probe().catch((error: unknown) => error as Error);
    if (!(value instanceof Error) && isGood(value)) return value;
    if (Date.now() > end) throw new Error(`not within ${withinMs} ms: ${shown(value).slice(0, 4_000)}`);
    await sleep(100);
  }
}

function shown(value: unknown): string {
  if (value instanceof Error) return value.stack ?? value.message;
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
}
