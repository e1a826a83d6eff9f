import { type Answer, errorAnswer } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import {
  decideInstall,
  doneText,
  HELM_FILES,
  type HelmInstallPlan,
  type HelmRelease,
  type HelmUninstallPlan,
  helmAnswer,
  helmFailure,
  historyArgv,
  installArgv,
  isAbsent,
  lastGood,
  type ReleaseState,
  readReleases,
} from '../../domain/kubernetes/helm.js';
import { failureText } from '../../domain/kubernetes/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { CommandResult } from '../../ports/command/command-runner.js';
import type { TaskExit } from '../../ports/instruction/task-runner.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import { download } from '../instruction/download.js';
import type { EffectContext } from '../instruction/effects.js';
import { CANCELLED_RUNNING } from '../instruction/script-effect.js';
import type { ClusterPrograms } from './cluster-programs.js';
import { programEnd } from './kubernetes-effect.js';

const ASK_MS = 60_000;
const RECOVER_MS = 5 * 60_000;
const MAX_VALUES_BYTES = 1024 * 1024;
const STEP = /^release at revision (\d+)$/;

export interface HelmEffectParts {
  readonly programs: ClusterPrograms;
  readonly web: WebClient;
  readonly clock: Clock;
}

/** Charts of helm. One run works on a release at a time: their lane is the release's. */
export class HelmEffect {
  readonly #parts: HelmEffectParts;

  constructor(parts: HelmEffectParts) {
    this.#parts = parts;
  }

  /** A release that a dead run has left half done is brought back first. @throws AgentError `command.*`, `instruction.*`, `outbound.*` */
  async install(plan: HelmInstallPlan, context: EffectContext): Promise<Answer> {
    const history = await this.#history(plan, context);
    const state = history.at(-1);
    const step = STEP.exec(context.step ?? '')?.[1];
    const decision = decideInstall(plan, state, step === undefined ? undefined : Number(step), this.#parts.clock.now());
    if (decision.do === 'done') return helmAnswer('INSTALL_HELM_CHART', ended(doneText(plan, decision.state)));
    const values = await this.#values(plan, context);
    await this.#judge(plan, context);
    // From here on a later attempt can tell what this one has done.
    if (step === undefined) await context.reached(`release at revision ${state?.revision ?? 0}`);
    if (decision.do === 'recover') await this.#recover(plan, history, context);
    context.signal.throwIfAborted();
    return helmTaskAnswer(await this.#run(plan, values, context));
  }

  /** One that is absent is uninstalled. @throws AgentError `command.*` */
  async uninstall({ release, namespace, timeoutMs }: HelmUninstallPlan, options: CallOptions): Promise<Answer> {
    const end = await this.#ask(['helm', 'uninstall', release, '--namespace', namespace], timeoutMs, options);
    const type = 'UNINSTALL_HELM_CHART';
    return isAbsent(end) ? helmAnswer(type, ended(`release ${release} in ${namespace} is not there`)) : helmAnswer(type, end);
  }

  async #recover(release: HelmRelease, history: readonly ReleaseState[], options: CallOptions): Promise<void> {
    const { release: name, namespace } = release;
    const good = lastGood(history);
    const argv: readonly [string, ...string[]] =
      good === undefined
        ? ['helm', 'uninstall', name, '--namespace', namespace]
        : ['helm', 'rollback', name, String(good), '--namespace', namespace];
    const end = await this.#ask(argv, RECOVER_MS, options);
    if (end.exitCode !== 0 && !isAbsent(end)) throw failed(argv, end);
  }

  /** None for a release that is not there. */
  async #history(release: HelmRelease, options: CallOptions): Promise<readonly ReleaseState[]> {
    const argv = historyArgv(release);
    const end = await this.#ask(argv, ASK_MS, options);
    if (isAbsent(end)) return [];
    const read = end.exitCode === 0 ? readReleases(parsed(end.stdout), Date.parse) : undefined;
    if (read === undefined) throw failed(argv, end);
    return read;
  }

  /** Fetched here: helm would follow a redirect to anywhere. */
  async #values({ valuesUrl: url }: HelmInstallPlan, options: CallOptions): Promise<Uint8Array | undefined> {
    return url === '' ? undefined : download(this.#parts.web, { url, guarded: true, maxBytes: MAX_VALUES_BYTES }, options);
  }

  /** helm connects by itself: between this look-up and its own a name may change, as far as its TTL lets it. */
  async #judge({ repoUrl }: HelmInstallPlan, options: CallOptions): Promise<void> {
    await this.#parts.web.judge(repoUrl.replace(/^oci:/, 'https:'), options);
  }

  #run(plan: HelmInstallPlan, values: Uint8Array | undefined, { task: id, signal }: EffectContext): Promise<TaskExit> {
    const repositories = new TextEncoder().encode('repositories: []\n');
    const files = { [HELM_FILES.repositories]: repositories, ...(values === undefined ? {} : { [HELM_FILES.values]: values }) };
    const argv = installArgv(plan, values !== undefined);
    return this.#parts.programs.task({ id, argv, files, timeoutMs: plan.timeoutMs }, { signal });
  }

  #ask(argv: readonly [string, ...string[]], timeoutMs: number, { signal }: CallOptions): Promise<CommandResult> {
    return this.#parts.programs.run({ argv, timeoutMs }, { signal });
  }
}

/** Also of one that an earlier process has started. */
export function helmTaskAnswer(exit: TaskExit): Answer {
  if (exit.cancelled) return errorAnswer(CANCELLED_RUNNING);
  const end = programEnd(exit);
  return exit.startError === undefined
    ? helmAnswer('INSTALL_HELM_CHART', end)
    : helmFailure('INSTALL_HELM_CHART', failureText('helm', end));
}

function failed(argv: readonly string[], end: CommandResult): AgentError {
  return new AgentError('kubernetes.failed', { problem: failureText(argv.slice(0, 2).join(' '), end) });
}

function ended(stdout: string) {
  return { exitCode: 0, timedOut: false, stdout, stderr: '', dropped: 0 };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
