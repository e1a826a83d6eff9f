import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isConfirmed } from '../adapters/cli/confirm.js';
import { type CliContext, type ExitCode, exitCodes, UsageError } from '../adapters/cli/context.js';
import type { UninstallOptions } from '../adapters/cli/local-verbs.js';
import { structured, table } from '../adapters/cli/output.js';
import { SystemClock } from '../adapters/clock/system-clock.js';
import { ExecaCommandRunner } from '../adapters/command/execa-command-runner.js';
import { loadAddon } from '../adapters/dataplane/addon.js';
import { NftPacketFilter } from '../adapters/dataplane/nft-packet-filter.js';
import { ProcSysctls } from '../adapters/dataplane/proc-sysctls.js';
import { FileDnsmasqConfig } from '../adapters/dnsmasq/file-dnsmasq-config.js';
import { NativeTaskRunner } from '../adapters/instruction/native-task-runner.js';
import { runnerPath, systemdRunPath } from '../adapters/instruction/runner-process.js';
import { OverlayKeyFile } from '../adapters/overlay/overlay-key-file.js';
import { UfwRanges } from '../adapters/overlay/ufw-ranges.js';
import { WgOverlayDevice } from '../adapters/overlay/wg-overlay-device.js';
import { SystemdUnits } from '../adapters/service/systemd-units.js';
import { LinuxTraces } from '../adapters/uninstall/linux-traces.js';
import { DnsmasqRemover } from '../app/dnsmasq/dnsmasq-remover.js';
import { MachineEnd } from '../app/uninstall/machine-end.js';
import { RemovalRun, type StepOutcome } from '../app/uninstall/removal-run.js';
import { AgentError } from '../domain/kernel/errors.js';
import { type AbsolutePath, absolutePath, type Paths, under } from '../domain/kernel/paths.js';
import type { RemovalStep } from '../domain/uninstall/model.js';
import { planRemoval } from '../domain/uninstall/plan.js';
import type { CallOptions } from '../ports/call-options.js';
import type { PacketFilter } from '../ports/dataplane/packet-filter.js';
import { holdDataDir } from './data-dir.js';
import { DNSMASQ_FILE } from './modules/dnsmasq.js';
import { TASK_ENV } from './modules/kubernetes.js';
import { removalOrders } from './modules/uninstall.js';
import { pathsOf } from './paths.js';

/** An agent drains connections for 60 s before it ends. */
const HOLD_MS = 90_000;
const HOLD_LOOK_MS = 250;

/** Removes what this node has made on the machine, and with `uninstall` and `reinstall` the node itself. */
export async function uninstall(context: CliContext, options: UninstallOptions): Promise<ExitCode> {
  const paths = pathsOf(options, context.env, '/var/lib/holdfast');
  const root = absolutePath(resolve(options.root ?? '/')) ?? paths.dataDir;
  refuseControlPlane(paths);
  const steps = planRemoval({ paths, root }, options.verb === 'cleanup' ? 'cleanup' : 'uninstall');
  if (options.dryRun) {
    show(context, options, steps, undefined);
    return exitCodes.done;
  }
  const command = options.commandFile === undefined ? undefined : await readCommand(options.commandFile);
  if (!options.yes && !(await isConfirmed(context, `${options.verb} the node of ${paths.dataDir}`, CONSEQUENCES[options.verb])))
    return exitCodes.failed;
  return carryOut(context, options, { paths, root, steps, command });
}

const CONSEQUENCES: Readonly<Record<UninstallOptions['verb'], string>> = {
  cleanup: 'it carries no traffic until the agent is started again.',
  uninstall: 'it leaves its control plane and Kubernetes; its certificates are gone for good.',
  reinstall: 'it leaves its control plane and Kubernetes, and is installed anew by the command.',
};

interface Wanted {
  readonly paths: Paths;
  readonly root: AbsolutePath;
  readonly steps: readonly RemovalStep[];
  readonly command: string | undefined;
}

async function carryOut(context: CliContext, options: UninstallOptions, { paths, root, steps, command }: Wanted) {
  const { console, signal } = context;
  const commands = new ExecaCommandRunner();
  const orders = removalOrders(paths);
  if (command !== undefined) await orders.give({ task: undefined, command, at: Date.now() }, { signal });
  const order = options.verb === 'cleanup' ? undefined : await orders.read({ signal });
  const end = new MachineEnd({ commands, orders, traces: new LinuxTraces(), folder: paths.removal, env: TASK_ENV });
  // The former run of it was cut off in the middle: that it had begun is all that is known.
  if (order?.stage === 'installing') {
    console.err('the command of the reinstall had begun, and is not run again\n');
    await end.finish(options, { signal });
    return exitCodes.failed;
  }
  const run = removalRun(paths, root, commands);
  const told = ({ step, problem }: StepOutcome) =>
    console.err(
      problem === undefined ? `${step.capability}: ${step.what}\n` : `${step.capability}: FAILED: ${step.what}: ${problem}\n`,
    );
  const outcomes = await run.carryOut(steps, { evenState: options.reboot, told }, { signal });
  if (outcomes.length < steps.length) {
    // Nothing was removed. Tried again at each start of the machine it would be a loop of reboots.
    await end.finish({ reboot: false }, { signal });
    show(context, options, steps, outcomes);
    return exitCodes.failed;
  }
  const installed = order?.kind === 'reinstall' ? await end.install(order, { signal }) : undefined;
  if (installed !== undefined) console.err(`reinstall: ${installed}\n`);
  show(context, options, steps, outcomes);
  if (options.verb !== 'cleanup') await end.finish(options, { signal });
  const failed = installed !== undefined || outcomes.some(({ problem }) => problem !== undefined);
  return failed ? exitCodes.failed : exitCodes.done;
}

/** @throws AgentError `uninstall.not_a_node` */
function refuseControlPlane({ dataDir, logDb, controlDb }: Paths): void {
  if (existsSync(logDb) || existsSync(controlDb))
    throw new AgentError('uninstall.not_a_node', { problem: `${dataDir} is the data directory of a control plane` });
}

async function readCommand(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new UsageError(`--command-file ${file}: ${error.message}`);
  });
  if (text.trim() === '') throw new UsageError(`--command-file ${file} is empty`);
  return text;
}

function removalRun(paths: Paths, root: AbsolutePath, commands: ExecaCommandRunner): RemovalRun {
  const dnsmasq = { file: under(root, DNSMASQ_FILE), memoryFile: paths.dnsmasqMemory, commands };
  const runner = runnerPath(process.env.HOLDFAST_RUNNER);
  return new RemovalRun({
    commands,
    traces: new LinuxTraces(),
    tasks: new NativeTaskRunner({ folder: paths.run, runnerPath: runner, systemdRun: systemdRunPath() }),
    overlay: new WgOverlayDevice({
      commands,
      key: new OverlayKeyFile(paths.overlayKey),
      firewall: new UfwRanges(commands),
      systemdRun: systemdRunPath(),
    }),
    dnsmasq: new DnsmasqRemover(new FileDnsmasqConfig(dnsmasq), new SystemdUnits({ commands })),
    packetFilter: removableFilter(),
    sysctls: new ProcSysctls(paths.sysctls),
    hold: (options) => holdOnceStopped(paths, options),
  });
}

/** A machine whose kernel has no nf_tables has no table of ours either. */
function removableFilter(): Pick<PacketFilter, 'remove'> {
  return {
    remove: async (options) => {
      try {
        await new NftPacketFilter(loadAddon(), { owner: true }).remove(options);
      } catch (error) {
        if (!(error instanceof AgentError) || !isWithoutFilter(error)) throw error;
      }
    },
  };
}

function isWithoutFilter({ cause }: AgentError): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return code === 'EPROTONOSUPPORT' || code === 'EOPNOTSUPP';
}

/** @throws AgentError `agent.data_dir_locked` when a daemon goes on using it for 90 s */
async function holdOnceStopped(paths: Paths, options: CallOptions): Promise<void> {
  if (!existsSync(paths.dataDir)) return;
  const addon = loadAddon();
  const clock = new SystemClock();
  const end = clock.monotonic() + HOLD_MS;
  for (;;) {
    try {
      holdDataDir(addon, paths);
      return;
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'agent.data_dir_locked' || clock.monotonic() >= end) throw error;
      await clock.sleep(HOLD_LOOK_MS, options);
    }
  }
}

/** @param outcomes undefined: of a plan */
function show(
  { console }: CliContext,
  { output, verb }: UninstallOptions,
  steps: readonly RemovalStep[],
  outcomes: readonly StepOutcome[] | undefined,
): void {
  if (output !== 'table') {
    const shown = steps.map((step, at) => ({ ...step, ...(outcomes === undefined ? {} : outcomeOf(outcomes[at])) }));
    console.out(structured(output, { verb, dryRun: outcomes === undefined, steps: shown }));
  } else if (outcomes === undefined) {
    console.out(
      table(
        ['CAPABILITY', 'WOULD REMOVE'],
        steps.map(({ capability, what }) => [capability, what]),
      ),
    );
  } else {
    const failed = steps.length - outcomes.filter(({ problem }) => problem === undefined).length;
    console.out(failed === 0 ? `${verb}: done, ${steps.length} steps\n` : `${verb}: ${failed} of ${steps.length} steps failed\n`);
  }
}

function outcomeOf(outcome: StepOutcome | undefined) {
  if (outcome === undefined) return { done: false, problem: 'not reached' };
  return outcome.problem === undefined ? { done: true } : { done: false, problem: outcome.problem };
}
