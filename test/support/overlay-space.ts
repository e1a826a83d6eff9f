import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ExecaCommandRunner } from '../../src/adapters/command/execa-command-runner.js';
import { OverlayKeyFile } from '../../src/adapters/overlay/overlay-key-file.js';
import { UfwRanges } from '../../src/adapters/overlay/ufw-ranges.js';
import { WgOverlayDevice } from '../../src/adapters/overlay/wg-overlay-device.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { Command, CommandResult, CommandRunner } from '../../src/ports/command/command-runner.js';

const run = promisify(execFile);

/**
 * A machine as its network sees it: a network namespace, and a mount namespace of its own for the sockets of wireguard-go, which have one
 * folder. Gone with its disposal, and what was started in it. Needs root.
 */
export class OverlaySpace implements AsyncDisposable {
  readonly name: string;
  readonly folder: string;
  readonly commands: CommandRunner;
  readonly device: WgOverlayDevice;
  readonly #holder: ChildProcess;

  private constructor(name: string, folder: string, holder: ChildProcess) {
    this.name = name;
    this.folder = folder;
    this.#holder = holder;
    this.commands = new CommandsThere(this.enter);
    const key = new OverlayKeyFile(join(folder, 'overlay.key'));
    this.device = new WgOverlayDevice({
      commands: this.commands,
      key,
      firewall: new UfwRanges(this.commands),
      systemdRun: undefined,
    });
  }

  static async make(): Promise<OverlaySpace> {
    const name = `hfo-${randomBytes(4).toString('hex')}`;
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-overlay-'));
    await mkdir('/var/run/wireguard', { recursive: true });
    await run('ip', ['netns', 'add', name]);
    const hold = 'mount -t tmpfs tmpfs /var/run/wireguard && ip link set lo up && echo held && exec sleep infinity';
    const holder = spawn('ip', ['netns', 'exec', name, 'sh', '-c', hold], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    return new OverlaySpace(name, folder, holder);
  }

  /** What a command line begins with to run here. */
  get enter(): readonly [string, ...string[]] {
    return ['nsenter', '-t', String(this.#holder.pid), '-m', '-n', '--'];
  }

  /** Its output. @throws Error when it fails */
  async sh(line: string): Promise<string> {
    const [program, ...args] = [...this.enter, 'sh', '-c', line];
    return (await run(program ?? '', args)).stdout;
  }

  spawn(argv: readonly string[]): ChildProcess {
    const [program, ...args] = this.enter;
    return spawn(program, [...args, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { stdout } = await run('ip', ['netns', 'pids', this.name]);
    for (const pid of stdout.split('\n').filter((line) => line !== '')) {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    await run('ip', ['netns', 'del', this.name]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Programs in another namespace. */
class CommandsThere implements CommandRunner {
  readonly #enter: readonly [string, ...string[]];
  readonly #commands = new ExecaCommandRunner();

  constructor(enter: readonly [string, ...string[]]) {
    this.#enter = enter;
  }

  async run(command: Command, options: CallOptions): Promise<CommandResult> {
    const result = await this.#commands.run({ ...command, argv: [...this.#enter, ...command.argv] }, options);
    if (result.exitCode !== 127) return result;
    throw new AgentError('command.not_found', { program: command.argv[0] });
  }
}

/** A link between two of them: the name of its end in each, and the address there. */
export async function connect(
  one: { readonly space: OverlaySpace; readonly device: string; readonly address: string },
  other: { readonly space: OverlaySpace; readonly device: string; readonly address: string },
): Promise<void> {
  const names = [one, other].map(() => `v${randomBytes(4).toString('hex')}`);
  await run('ip', ['link', 'add', names[0] ?? '', 'type', 'veth', 'peer', 'name', names[1] ?? '']);
  for (const [place, { space, device, address }] of [one, other].entries()) {
    await run('ip', ['link', 'set', names[place] ?? '', 'netns', space.name, 'name', device]);
    await space.sh(`ip addr add ${address} dev ${device} && ip link set ${device} up`);
  }
}
