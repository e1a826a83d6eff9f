import { AgentError } from '../../domain/kernel/errors.js';
import type { Argv, RemovalStep } from '../../domain/uninstall/model.js';
import { ownEntries } from '../../domain/uninstall/plan.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandResult, CommandRunner } from '../../ports/command/command-runner.js';
import type { PacketFilter } from '../../ports/dataplane/packet-filter.js';
import type { Sysctls } from '../../ports/dataplane/sysctls.js';
import type { TaskRunner } from '../../ports/instruction/task-runner.js';
import type { OverlayDevice } from '../../ports/overlay/overlay-device.js';
import type { Traces } from '../../ports/uninstall/traces.js';
import { messageOf } from '../agent/managed-subsystem.js';
import type { DnsmasqRemover } from '../dnsmasq/dnsmasq-remover.js';

const PROBE_MS = 10_000;
const UNMOUNT_MS = 10_000;

export interface RemovalRunParts {
  readonly commands: CommandRunner;
  readonly traces: Traces;
  readonly tasks: TaskRunner;
  readonly overlay: Pick<OverlayDevice, 'remove'>;
  readonly dnsmasq: DnsmasqRemover;
  readonly packetFilter: Pick<PacketFilter, 'remove'>;
  readonly sysctls: Pick<Sysctls, 'restore'>;
  /** Resolves when no daemon uses the data directory, and none can until this process ends. @throws AgentError `agent.data_dir_locked` */
  readonly hold: (options: CallOptions) => Promise<void>;
}

export interface StepOutcome {
  readonly step: RemovalStep;
  /** Undefined: it is gone, or was not there. */
  readonly problem: string | undefined;
}

/** Carries a plan of removal out. Each step can be done again, so that it can be begun anew after any death. */
export class RemovalRun {
  readonly #parts: RemovalRunParts;

  constructor(parts: RemovalRunParts) {
    this.#parts = parts;
  }

  /**
   * In order, each told to `told` when it is over. One that fails does not hold up the others, with two exceptions: while a daemon uses the
   * data directory nothing is removed, and the state, by which what is left is known, stays unless `evenState`.
   */
  async carryOut(
    steps: readonly RemovalStep[],
    { evenState, told }: { readonly evenState: boolean; readonly told: (outcome: StepOutcome) => void },
    options: CallOptions,
  ): Promise<readonly StepOutcome[]> {
    const outcomes: StepOutcome[] = [];
    for (const step of steps) {
      const failed = outcomes.some(({ problem }) => problem !== undefined);
      const isKept = step.do === 'remove_state' && failed && !evenState;
      const problem = isKept ? 'it stays, since something else could not be removed' : await this.#problem(step, options);
      const outcome = { step, problem };
      outcomes.push(outcome);
      told(outcome);
      if (step.do === 'hold_data_dir' && problem !== undefined) break;
    }
    return outcomes;
  }

  async #problem(step: RemovalStep, options: CallOptions): Promise<string | undefined> {
    try {
      return await this.#act(step, options);
    } catch (error) {
      options.signal.throwIfAborted();
      return messageOf(error);
    }
  }

  async #act(step: RemovalStep, options: CallOptions): Promise<string | undefined> {
    const { traces, overlay, dnsmasq, packetFilter, sysctls, hold } = this.#parts;
    switch (step.do) {
      case 'run':
        return this.#run(step, options);
      case 'hold_data_dir':
        await hold(options);
        return undefined;
      case 'end_tasks':
        return this.#endTasks(options);
      case 'remove_overlay':
        await overlay.remove(options);
        return undefined;
      case 'remove_rules':
        await packetFilter.remove(options);
        return undefined;
      case 'restore_sysctls':
        await sysctls.restore(options);
        return undefined;
      case 'remove_dnsmasq':
        await dnsmasq.remove(options);
        return undefined;
      case 'unmount_below':
        return this.#unmount(step, options);
      case 'remove_file':
        await traces.remove(step.path, options);
        return undefined;
      case 'remove_state':
        return this.#removeState(step, options);
    }
  }

  async #run(
    { argv, onlyIf, timeoutMs }: Extract<RemovalStep, { readonly do: 'run' }>,
    options: CallOptions,
  ): Promise<string | undefined> {
    if (onlyIf !== undefined && (await this.#program(onlyIf, PROBE_MS, options))?.exitCode !== 0) return undefined;
    const ran = await this.#program(argv, timeoutMs, options);
    if (ran === undefined || ran.exitCode === 0) return undefined;
    const said = ran.stderr.trim() || ran.stdout.trim() || `exit code ${ran.exitCode}`;
    return `${argv.join(' ')}: ${ran.timedOut ? 'it took too long' : said.slice(-1_000)}`;
  }

  /** Undefined when this machine does not have it: what it has made is not there either. */
  async #program(argv: Argv, timeoutMs: number, options: CallOptions): Promise<CommandResult | undefined> {
    try {
      return await this.#parts.commands.run({ argv, timeoutMs }, options);
    } catch (error) {
      if (error instanceof AgentError && error.code === 'command.not_found') return undefined;
      throw error;
    }
  }

  async #endTasks(options: CallOptions): Promise<undefined> {
    const { tasks } = this.#parts;
    const all = await tasks.list(options);
    for (const id of all) await tasks.cancel(id, options);
    return undefined;
  }

  async #unmount(
    { path }: Extract<RemovalStep, { readonly do: 'unmount_below' }>,
    options: CallOptions,
  ): Promise<string | undefined> {
    const { traces } = this.#parts;
    // Lazily: who has it open keeps it, and nobody is waited for.
    for (const point of await traces.mountsBelow(path, options))
      await this.#program(['umount', '--lazy', '--', point], UNMOUNT_MS, options);
    const left = await traces.mountsBelow(path, options);
    return left.length === 0 ? undefined : `still mounted: ${left.join(', ')}`;
  }

  async #removeState(
    { folder, names }: Extract<RemovalStep, { readonly do: 'remove_state' }>,
    options: CallOptions,
  ): Promise<string | undefined> {
    const { traces } = this.#parts;
    for (const entry of ownEntries(names, await traces.entries(folder, options)))
      await traces.remove(`${folder}/${entry}` as typeof folder, options);
    await traces.removeEmptyFolder(folder, options);
    return undefined;
  }
}
