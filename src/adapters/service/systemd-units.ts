import { stat } from 'node:fs/promises';
import { AgentError } from '../../domain/kernel/errors.js';
import type { UnitState } from '../../domain/service/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandResult, CommandRunner } from '../../ports/command/command-runner.js';
import type { Units } from '../../ports/service/units.js';

const SHOW_MS = 10_000;
const RESTART_MS = 20_000;
const PROPERTIES = 'LoadState,ActiveState,SubState,ExecMainStartTimestampMonotonic';

export interface SystemdUnitsOptions {
  readonly commands: CommandRunner;
  readonly systemctl?: string;
  /** Is there when systemd has booted this machine, sd_booted(3). */
  readonly booted?: string;
}

export class SystemdUnits implements Units {
  readonly #commands: CommandRunner;
  readonly #systemctl: string;
  readonly #booted: string;

  constructor({ commands, systemctl = 'systemctl', booted = '/run/systemd/system' }: SystemdUnitsOptions) {
    this.#commands = commands;
    this.#systemctl = systemctl;
    this.#booted = booted;
  }

  async state(unit: string, options: CallOptions): Promise<UnitState> {
    await this.#check(options);
    const shown = await this.#run(['show', `--property=${PROPERTIES}`, '--', unit], SHOW_MS, options);
    if (shown.exitCode !== 0) throw failed(`systemctl show ${unit}`, shown);
    return parse(shown.stdout);
  }

  async restart(unit: string, options: CallOptions): Promise<void> {
    await this.#check(options);
    // Of no weight when it fails: there may be nothing to reset.
    await this.#run(['reset-failed', '--', unit], SHOW_MS, options);
    const restarted = await this.#run(['restart', '--', unit], RESTART_MS, options);
    if (restarted.exitCode !== 0) throw failed(`systemctl restart ${unit}`, restarted);
  }

  async reload(unit: string, options: CallOptions): Promise<void> {
    await this.#check(options);
    const reloaded = await this.#run(['reload', '--', unit], RESTART_MS, options);
    if (reloaded.exitCode !== 0) throw failed(`systemctl reload ${unit}`, reloaded);
  }

  async #check({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const isThere = await stat(this.#booted).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isThere) throw new AgentError('service.unmanaged', { problem: 'systemd does not run on this machine' });
  }

  #run(args: readonly string[], timeoutMs: number, options: CallOptions): Promise<CommandResult> {
    return this.#commands.run({ argv: [this.#systemctl, ...args], timeoutMs }, options);
  }
}

/** `Name=value`, one a line, in any order. */
function parse(text: string): UnitState {
  const values = new Map(text.split('\n').map((line) => splitOnce(line)));
  const started = values.get('ExecMainStartTimestampMonotonic') ?? '';
  const active = values.get('ActiveState') ?? 'unknown';
  const sub = values.get('SubState') ?? '';
  return {
    isKnown: values.get('LoadState') === 'loaded',
    isActive: active === 'active',
    startedAt: /^\d+$/.test(started) ? BigInt(started) : 0n,
    text: sub === '' ? active : `${active} (${sub})`,
  };
}

function splitOnce(line: string): [string, string] {
  const at = line.indexOf('=');
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
}

function failed(what: string, { timedOut, exitCode, stderr, stdout }: CommandResult): AgentError {
  const said = (stderr.trim() || stdout.trim()).slice(0, 1_000) || `status ${exitCode}`;
  return new AgentError('service.failed', { problem: `${what}: ${timedOut ? 'it took too long' : said}` });
}
