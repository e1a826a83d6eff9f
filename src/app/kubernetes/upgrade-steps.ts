import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import {
  aptList,
  isArmouredKey,
  programFailure,
  readUpgradedNode,
  repositoryUrl,
  type UpgradePlan,
  type UpgradeStep,
  versionIn,
} from '../../domain/kubernetes/upgrade.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { CommandResult, CommandRunner } from '../../ports/command/command-runner.js';
import type { MachineFiles } from '../../ports/files/machine-files.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import type { Units } from '../../ports/service/units.js';
import { download } from '../instruction/download.js';
import type { AptPackages } from './apt-packages.js';
import type { HelmProgram } from './helm-program.js';
import type { StepTasks } from './step-tasks.js';
import { againText, patiently, type StepContext, type StepDone, type StepEnd } from './upgrade-step.js';

const ASK_MS = 15_000;
const LOOK_MS = 5_000;
const MAX_KEY_BYTES = 64 * 1024;
/** kubeadm has time-outs of its own, of 5 min for each static Pod. */
const KUBEADM_MS = 30 * 60_000;
/** A failed `upgrade apply` may have done it all the same. */
const REPORT_MS = 2 * 60_000;
const READY_MS = 5 * 60_000;
const CONTAINERD_PACKAGES = ['containerd.io', 'containerd'];
/** In every certificate of an API server that kubeadm makes, where 127.0.0.1 is not. */
const API_NAME = 'kubernetes';

export interface UpgradePaths {
  readonly signingKey: AbsolutePath;
  readonly aptList: AbsolutePath;
  /** Is there on a control plane, and nowhere else. */
  readonly adminConfig: AbsolutePath;
  readonly kubeletConfig: AbsolutePath;
}

export interface UpgradeStepsParts {
  readonly commands: CommandRunner;
  readonly tasks: StepTasks;
  readonly packages: AptPackages;
  readonly helm: HelmProgram;
  readonly files: MachineFiles;
  readonly units: Units;
  readonly web: WebClient;
  readonly clock: Clock;
  readonly paths: UpgradePaths;
  /** Base URL of the packages of Kubernetes. */
  readonly server: () => string;
  /** The API server of this machine, where it is a control plane. */
  readonly localApi: string;
  /** What Kubernetes calls this node. */
  readonly nodeName: string;
}

const THERE: StepDone = { done: 'is there already' };
const LEFT: StepDone = { done: 'is left as it is' };

/** The steps of an upgrade. Each asks whether it is done before it does anything. */
export class UpgradeSteps {
  readonly #parts: UpgradeStepsParts;

  constructor(parts: UpgradeStepsParts) {
    this.#parts = parts;
  }

  /** Empty when this machine has no kubelet. */
  async kubeletVersion(options: CallOptions): Promise<string> {
    try {
      const { stdout } = await this.#parts.commands.run({ argv: ['kubelet', '--version'], timeoutMs: ASK_MS }, options);
      return versionIn(stdout);
    } catch (error) {
      if (error instanceof AgentError && error.code === 'command.not_found') return '';
      throw error;
    }
  }

  /** @throws AgentError for what is no program's own failure */
  run(step: UpgradeStep, plan: UpgradePlan, context: StepContext): Promise<StepEnd> {
    const { units, helm } = this.#parts;
    const target = plan.kubernetes;
    switch (step) {
      case 'signing-key':
        return this.#signingKey(plan, context);
      case 'apt-list':
        return this.#aptList(plan, context);
      case 'apt-update':
        return this.#aptUpdate(context);
      case 'kubeadm':
        return this.#packages(step, ['kubeadm'], target, context);
      case 'cluster':
        return plan.isFirstControlPlane ? this.#apply(target, context) : this.#upgradeNode(context);
      case 'kubelet':
        return this.#packages(step, ['kubelet', 'kubectl'], target, context);
      case 'containerd':
        return plan.containerd === '' ? Promise.resolve(LEFT) : this.#containerd(plan.containerd, context);
      case 'helm':
        return plan.helm === '' ? Promise.resolve(LEFT) : helm.install(plan.helm, context);
      case 'restart':
        return units.restart('kubelet.service', context).then(() => ({ done: 'the kubelet was restarted' }));
      case 'wait':
        return this.#wait(target, context);
    }
  }

  /** Whether its server is reachable shows here, before anything is changed. */
  async #signingKey(plan: UpgradePlan, context: StepContext): Promise<StepEnd> {
    const { web, clock, files, paths, server } = this.#parts;
    const url = `${repositoryUrl(server(), plan.kubernetes)}Release.key`;
    const fetchOnce = () => download(web, { url, guarded: true, maxBytes: MAX_KEY_BYTES }, context);
    const text = new TextDecoder().decode(await patiently(fetchOnce, clock, context));
    if (!isArmouredKey(text)) {
      const remedy = 'see that no proxy answers in its place, and that client.server.packages names a server of packages';
      return { cause: `${url} serves no signing key`, remedy };
    }
    const isThere = (await files.read(paths.signingKey, context)) === text;
    if (!isThere) await files.replace([{ path: paths.signingKey, text, mode: 0o644 }], context);
    return isThere ? THERE : { done: `was taken from ${url}` };
  }

  async #aptList({ kubernetes }: UpgradePlan, context: StepContext): Promise<StepEnd> {
    const { files, paths, server } = this.#parts;
    const text = aptList(repositoryUrl(server(), kubernetes), paths.signingKey);
    if ((await files.read(paths.aptList, context)) === text) return THERE;
    await files.replace([{ path: paths.aptList, text, mode: 0o644 }], context);
    return { done: `names ${repositoryUrl(server(), kubernetes)}` };
  }

  async #aptUpdate(context: StepContext): Promise<StepEnd> {
    const { packages, paths } = this.#parts;
    const failure = await packages.update(this.#step('apt-update', context), paths.aptList, context);
    return failure ?? { done: 'the list of packages was read' };
  }

  async #packages(name: string, names: readonly string[], version: string, context: StepContext): Promise<StepEnd> {
    const { packages, tasks } = this.#parts;
    const step = this.#step(name, context);
    const before = await tasks.state(step, context);
    if (before === 'not_begun') {
      const states = await Promise.all(names.map((each) => packages.state(each, context)));
      if (states.every((state) => state.isInstalled && state.isHeld && state.upstream === version)) return THERE;
    }
    // Not while the program of a dead process is still at it.
    const repaired = context.isAgain && before !== 'running' ? await packages.repair(context) : undefined;
    const failure = repaired ?? (await packages.install(step, names, version, context));
    return failure ?? { done: `${names.join(' and ')} ${version} are installed and held` };
  }

  async #apply(version: string, context: StepContext): Promise<StepEnd> {
    const { tasks } = this.#parts;
    const step = this.#step('cluster', context);
    if ((await tasks.state(step, context)) === 'not_begun' && (await this.#apiVersion(context)) === version) return THERE;
    const argv = ['kubeadm', 'upgrade', 'apply', `v${version}`, '--yes'] as const;
    const end = await tasks.run({ ...step, argv, timeoutMs: KUBEADM_MS }, context);
    if (end.exitCode === 0) return { done: `the control plane is at ${version}` };
    const failure = programFailure('kubeadm upgrade apply', end);
    const isAt = async () => (await this.#apiVersion(context)) === version;
    if (!(await this.#within(REPORT_MS, isAt, context))) return failure;
    context.warn(`kubeadm upgrade apply failed, but the API server is at ${version}: ${failure.cause}`);
    return { done: `the control plane is at ${version}` };
  }

  /** It converges: what it has done already it does again without harm. */
  async #upgradeNode(context: StepContext): Promise<StepEnd> {
    const argv = ['kubeadm', 'upgrade', 'node'] as const;
    const end = await this.#parts.tasks.run({ ...this.#step('cluster', context), argv, timeoutMs: KUBEADM_MS }, context);
    return end.exitCode === 0 ? { done: "the node's configuration was upgraded" } : programFailure('kubeadm upgrade node', end);
  }

  async #containerd(version: string, context: StepContext): Promise<StepEnd> {
    const { packages } = this.#parts;
    for (const name of CONTAINERD_PACKAGES) {
      const { isInstalled, upstream } = await packages.state(name, context);
      if (!isInstalled) continue;
      if (upstream === version) return THERE;
      const failure = await packages.update(this.#step('containerd-update', context), undefined, context);
      return failure ?? this.#packages('containerd', [name], version, context);
    }
    const remedy = 'upgrade it the way it was installed, and send the upgrade without targetContainerdVersion';
    return { cause: 'containerd was not installed as a package', remedy };
  }

  /** Both at once: right after the restart the old kubelet's Ready still stands there. */
  async #wait(version: string, context: StepContext): Promise<StepEnd> {
    let last = 'nothing was said of it';
    const isThere = async () => {
      const end = await this.#kubectl(['get', 'node', this.#parts.nodeName, '--output', 'json'], context);
      const node = end.exitCode === 0 ? readUpgradedNode(parsed(end.stdout)) : undefined;
      if (node === undefined) last = end.stderr.trim().split('\n').at(-1) ?? last;
      else last = `version ${node.version}, ${node.isReady ? 'ready' : 'not ready'}`;
      return node?.version === version && node.isReady;
    };
    if (await this.#within(READY_MS, isThere, context)) return { done: `the node is ready at ${version}` };
    const cause = `after ${READY_MS / 60_000} min the node is not ready at ${version} (${last})`;
    return { cause, remedy: 'look at `journalctl -u kubelet` on the node, mend it, then send the upgrade again' };
  }

  /** Empty while it cannot be told. */
  async #apiVersion(context: StepContext): Promise<string> {
    const { exitCode, stdout } = await this.#kubectl(['get', '--raw', '/version'], context);
    const version = exitCode === 0 ? parsed(stdout) : undefined;
    return typeof version === 'object' && version !== null && 'gitVersion' in version
      ? versionIn(String(version.gitVersion))
      : '';
  }

  /** A control plane asks its own API server: another's may have another version. */
  async #kubectl(args: readonly string[], context: StepContext): Promise<CommandResult> {
    const { commands, files, paths, localApi } = this.#parts;
    const isControlPlane = (await files.read(paths.adminConfig, context)) !== undefined;
    const where = isControlPlane
      ? ['--kubeconfig', paths.adminConfig, '--server', localApi, '--tls-server-name', API_NAME]
      : ['--kubeconfig', paths.kubeletConfig];
    return commands.run({ argv: ['kubectl', ...where, '--request-timeout=10s', ...args], timeoutMs: ASK_MS }, context);
  }

  async #within(budgetMs: number, isThere: () => Promise<boolean>, { signal }: StepContext): Promise<boolean> {
    const { clock } = this.#parts;
    const end = clock.monotonic() + budgetMs;
    for (;;) {
      if (await isThere()) return true;
      if (clock.monotonic() + LOOK_MS > end) return false;
      await clock.sleep(LOOK_MS, { signal });
    }
  }

  #step(name: string, { task, warn }: StepContext) {
    return { work: task, name, onRetry: (problem: string, waitMs: number) => warn(againText(problem, waitMs)) };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
