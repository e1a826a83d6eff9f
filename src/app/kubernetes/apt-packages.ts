import type { ProgramEnd } from '../../domain/kubernetes/model.js';
import {
  PACKAGE_FORMAT,
  type PackageState,
  packageState,
  programFailure,
  type StepFailure,
} from '../../domain/kubernetes/upgrade.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import { NETWORK_WAITS_MS, type StepTask, type StepTasks } from './step-tasks.js';

const ASK_MS = 30_000;
const UPDATE_MS = 5 * 60_000;
const INSTALL_MS = 15 * 60_000;
const REPAIR_MS = 10 * 60_000;
const MARK_MS = 10_000;
/** apt waits in silence for whoever holds its locks, and fails after these seconds. */
const LOCK_OPTION = ['--option', 'DPkg::Lock::Timeout=120'] as const;
/** An answered question: a configuration that somebody has changed stays as it is. */
const KEEP_CONFIG = ['--option', 'Dpkg::Options::=--force-confdef', '--option', 'Dpkg::Options::=--force-confold'] as const;
const QUIET = { DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_MODE: 'l' };

export interface AptPackagesParts {
  readonly commands: CommandRunner;
  readonly tasks: StepTasks;
}

const NEVER = new AbortController().signal;

type PackageStep = Pick<StepTask, 'work' | 'name' | 'onRetry'>;

/** Packages of this machine, by apt and dpkg. */
export class AptPackages {
  readonly #parts: AptPackagesParts;

  constructor(parts: AptPackagesParts) {
    this.#parts = parts;
  }

  /** What dpkg knows of it, and whether it is held. @throws AgentError `command.*` */
  async state(name: string, options: CallOptions): Promise<PackageState & { readonly isHeld: boolean }> {
    const shown = await this.#ask(['dpkg-query', '--show', PACKAGE_FORMAT, name], ASK_MS, options);
    const held = await this.#ask(['apt-mark', 'showhold', name], ASK_MS, options);
    // dpkg-query ends with 1 for a name that it does not know.
    return { ...packageState(shown.exitCode === 0 ? shown.stdout : ''), isHeld: held.stdout.split('\n').includes(name) };
  }

  /**
   * Reads the lists of packages.
   * @param list the only one that is read, and a failure of it fails; undefined: all of them
   */
  async update(step: PackageStep, list: string | undefined, options: CallOptions): Promise<StepFailure | undefined> {
    const only =
      list === undefined
        ? []
        : [
            ...['--option', `Dir::Etc::sourcelist=${list}`, '--option', 'Dir::Etc::sourceparts=-'],
            // The others' lists stay; by itself apt ends well although it could fetch nothing.
            ...['--option', 'APT::Get::List-Cleanup=0', '--option', 'APT::Update::Error-Mode=any'],
          ];
    const argv = ['apt-get', ...LOCK_OPTION, ...only, 'update'] as const;
    const end = await this.#run({ ...step, argv, timeoutMs: UPDATE_MS }, options);
    return end.exitCode === 0 ? undefined : programFailure('apt-get update', end);
  }

  /** Those packages in `version`, whatever its revision, held afterwards, also when it failed. */
  async install(
    step: PackageStep,
    names: readonly string[],
    version: string,
    options: CallOptions,
  ): Promise<StepFailure | undefined> {
    const freed = await this.#ask(['apt-mark', 'unhold', ...names], MARK_MS, options);
    if (freed.exitCode !== 0) return programFailure('apt-mark unhold', freed);
    let held: ProgramEnd | undefined;
    try {
      const wanted = names.map((name) => `${name}=${version}-*`);
      const argv = ['apt-get', ...LOCK_OPTION, ...KEEP_CONFIG, 'install', '--yes', ...wanted] as const;
      const end = await this.#run({ ...step, argv, timeoutMs: INSTALL_MS }, options);
      if (end.exitCode !== 0) return programFailure('apt-get install', end);
    } finally {
      // Also after an abort: a package that is free would be upgraded by whoever upgrades this machine.
      held = await this.#ask(['apt-mark', 'hold', ...names], MARK_MS, { signal: NEVER });
    }
    return held.exitCode === 0 ? undefined : programFailure('apt-mark hold', held);
  }

  /** Ends what a dead process has left half installed; nothing otherwise. */
  async repair(options: CallOptions): Promise<StepFailure | undefined> {
    const argv = ['dpkg', '--force-confdef', '--force-confold', '--configure', '--pending'] as const;
    const end = await this.#parts.commands.run({ argv, env: QUIET, timeoutMs: REPAIR_MS }, options);
    return end.exitCode === 0 ? undefined : programFailure('dpkg --configure', end);
  }

  #run(step: StepTask, options: CallOptions): Promise<ProgramEnd> {
    return this.#parts.tasks.run({ ...step, env: QUIET, waitsMs: NETWORK_WAITS_MS }, options);
  }

  #ask(argv: readonly [string, ...string[]], timeoutMs: number, { signal }: CallOptions): Promise<ProgramEnd> {
    return this.#parts.commands.run({ argv, timeoutMs }, { signal });
  }
}
