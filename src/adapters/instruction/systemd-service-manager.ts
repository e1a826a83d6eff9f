import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ServiceManager } from '../../ports/instruction/service-manager.js';

const COMMAND_MS = 10_000;
/** Fixed: a second one cannot be scheduled while the first is (engine.md A16b). */
const RESTART_UNIT = 'holdfast-restart';

export interface SystemdOptions {
  /** The unit that runs this daemon. */
  readonly unit: string;
  /** Is there when systemd has booted this machine, sd_booted(3). */
  readonly booted?: string;
  readonly systemctl?: string;
  readonly systemdRun?: string;
}

interface Ran {
  readonly code: number | string | undefined;
  readonly output: string;
}

/** systemd restarts the daemon: by a timer of its own, so that the restart is no child of what it ends. */
export class SystemdServiceManager implements ServiceManager {
  readonly #unit: string;
  readonly #booted: string;
  readonly #systemctl: string;
  readonly #systemdRun: string;

  constructor({ unit, booted = '/run/systemd/system', systemctl = 'systemctl', systemdRun = 'systemd-run' }: SystemdOptions) {
    this.#unit = unit;
    this.#booted = booted;
    this.#systemctl = systemctl;
    this.#systemdRun = systemdRun;
  }

  async check({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const isThere = await stat(this.#booted).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isThere) throw new AgentError('service.unmanaged', { problem: 'systemd does not run on this machine' });
    const { code, output } = await run(this.#systemctl, ['is-active', this.#unit], signal);
    if (code === 0) return;
    throw new AgentError('service.unmanaged', { problem: `systemd does not run ${this.#unit}: ${output || `status ${code}`}` });
  }

  async restart(delaySeconds: number, { signal }: CallOptions): Promise<void> {
    await this.check({ signal });
    // Not to be kept by a limit on starts: the restart was asked for.
    const command = ['/bin/sh', '-c', '"$1" reset-failed "$2"; exec "$1" restart "$2"', 'sh', this.#systemctl, this.#unit];
    const timer = [
      '--collect',
      '--quiet',
      `--unit=${RESTART_UNIT}`,
      `--on-active=${delaySeconds}s`,
      '--timer-property=AccuracySec=100ms',
    ];
    const { code, output } = await run(this.#systemdRun, [...timer, '--', ...command], signal);
    if (code === 0 || (await this.#isScheduled(signal))) return;
    throw new AgentError('service.failed', { problem: `systemd-run: ${output || `status ${code}`}` });
  }

  async #isScheduled(signal: AbortSignal): Promise<boolean> {
    return (await run(this.#systemctl, ['is-active', `${RESTART_UNIT}.timer`], signal)).code === 0;
  }
}

/** Never rejects but on abort: a status that is not 0, and a program that is not there, are answers. */
function run(program: string, args: readonly string[], signal: AbortSignal): Promise<Ran> {
  return new Promise((resolve, reject) => {
    execFile(program, [...args], { signal, timeout: COMMAND_MS, encoding: 'utf8' }, (error, stdout, stderr) => {
      if (signal.aborted) reject(signal.reason);
      else if (error === null) resolve({ code: 0, output: stdout.trim() });
      else resolve({ code: error.code ?? undefined, output: (stderr || stdout || error.message).trim() });
    });
  });
}
