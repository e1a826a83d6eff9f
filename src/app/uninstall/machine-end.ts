import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { Argv, RemovalOrder } from '../../domain/uninstall/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import type { Traces } from '../../ports/uninstall/traces.js';
import type { RemovalOrders } from './removal-orders.js';

const INSTALL_MS = 60 * 60_000;
const REBOOT_MS = 30_000;

export interface MachineEndParts {
  readonly commands: CommandRunner;
  readonly orders: RemovalOrders;
  readonly traces: Traces;
  /** Of the order. */
  readonly folder: AbsolutePath;
  /** The whole environment of a reinstall's command. */
  readonly env: Readonly<Record<string, string>>;
}

/** What comes after a node was removed. */
export class MachineEnd {
  readonly #parts: MachineEndParts;

  constructor(parts: MachineEndParts) {
    this.#parts = parts;
  }

  /**
   * Runs the command of a reinstall, from its file: no text of it is in an argument. It is begun once, whatever happens meanwhile.
   * Resolves with why it failed.
   */
  async install(order: RemovalOrder, options: CallOptions): Promise<string | undefined> {
    const { commands, orders, env } = this.#parts;
    await orders.installing(order, options);
    const argv: Argv = ['/bin/bash', orders.commandFile];
    const { exitCode, timedOut, stderr } = await commands.run({ argv, env, timeoutMs: INSTALL_MS }, options);
    if (exitCode === 0) return undefined;
    return timedOut
      ? 'the command took longer than an hour'
      : `the command failed, exit code ${exitCode}: ${stderr.trim().slice(-1_000)}`;
  }

  /** The order is carried out. The machine starts anew where that was asked for. @throws AgentError `uninstall.not_removed` */
  async finish({ reboot }: { readonly reboot: boolean }, options: CallOptions): Promise<void> {
    const { orders, traces, folder } = this.#parts;
    await orders.done(options);
    await traces.remove(folder, options);
    if (!reboot || (await this.#succeeds(['systemctl', 'reboot'], options)) || (await this.#succeeds(['reboot'], options)))
      return;
    throw new AgentError('uninstall.not_removed', { problem: 'the machine does not start anew: reboot it by hand' });
  }

  async #succeeds(argv: Argv, options: CallOptions): Promise<boolean> {
    try {
      return (await this.#parts.commands.run({ argv, timeoutMs: REBOOT_MS }, options)).exitCode === 0;
    } catch (error) {
      if (error instanceof AgentError) return false;
      throw error;
    }
  }
}
