import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { ContainerModule } from 'inversify';
import { DurableMachineFiles } from '../../adapters/files/durable-machine-files.js';
import { NativeTaskRunner } from '../../adapters/instruction/native-task-runner.js';
import { runnerPath, systemdRunPath } from '../../adapters/instruction/runner-process.js';
import { RemovalEffect } from '../../app/uninstall/removal-effect.js';
import { RemovalLauncher } from '../../app/uninstall/removal-launcher.js';
import { RemovalOrders } from '../../app/uninstall/removal-orders.js';
import type { AbsolutePath, Paths } from '../../domain/kernel/paths.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';
import { NodePorts, Ports, Root } from '../tokens.js';
import { TASK_ENV } from './kubernetes.js';

/** A reset of Kubernetes and the command of a reinstall, each with its own deadline below it. */
const REMOVAL_MS = 150 * 60_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

export const uninstallModule = new ContainerModule(({ bind }) => {
  bind(NodePorts.removal)
    .toResolvedValue(
      ({ paths }, { root }, clock) =>
        new RemovalEffect({
          orders: removalOrders(paths),
          clock,
          launch: (options) => launchRemoval(paths, root, clock, options),
        }),
      [Root.facts, Root.node, Ports.clock],
    )
    .inSingletonScope();
});

export function removalOrders({ removal }: Paths): RemovalOrders {
  return new RemovalOrders(new DurableMachineFiles(), removal);
}

/** Starts `holdfast uninstall` outside of this process. Where nobody else stops the agent, it stops itself. */
export async function launchRemoval(paths: Paths, root: AbsolutePath, clock: Clock, options: CallOptions): Promise<void> {
  const systemdRun = systemdRunPath();
  const folder = `${paths.removal}/run`;
  const tasks = new NativeTaskRunner({ folder, runnerPath: runnerPath(process.env.HOLDFAST_RUNNER), systemdRun });
  const dataDir = root === '/' ? paths.dataDir : paths.dataDir.slice(root.length);
  const verb = ['uninstall', '--yes', '--reboot', '--root', root, '--data-dir', dataDir];
  const { HOLDFAST_RUNNER, HOLDFAST_ADDON } = process.env;
  const task = {
    id: hash('sha256', 'holdfast-uninstall', 'hex') as TaskId,
    argv: [process.execPath, ...process.execArgv, process.argv[1] ?? '', ...verb] as const,
    env: { ...TASK_ENV, ...given({ HOLDFAST_RUNNER, HOLDFAST_ADDON }) },
    ...{ cwd: '/', files: {}, timeoutMs: REMOVAL_MS, maxOutputBytes: MAX_OUTPUT_BYTES },
  };
  await new RemovalLauncher(tasks, task, clock).launch(options);
  if (!existsSync('/run/systemd/system')) process.kill(process.pid, 'SIGTERM');
}

function given(env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}
