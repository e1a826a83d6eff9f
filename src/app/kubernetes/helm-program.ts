import type { AbsolutePath } from '../../domain/kernel/paths.js';
import { programFailure, versionIn } from '../../domain/kubernetes/upgrade.js';
import type { Clock } from '../../ports/clock.js';
import type { CommandRunner } from '../../ports/command/command-runner.js';
import type { WebClient } from '../../ports/outbound/web-client.js';
import { download } from '../instruction/download.js';
import type { StepTasks } from './step-tasks.js';
import { patiently, type StepContext, type StepEnd } from './upgrade-step.js';

const SERVER = 'https://get.helm.sh';
/** Of helm 4 for amd64 it is 20 MiB. */
const MAX_ARCHIVE_BYTES = 128 * 1024 * 1024;
const UNPACK_MS = 2 * 60_000;
const ASK_MS = 30_000;
const ARCHIVE = 'helm.tar.gz';
const FRESH = '.helm.holdfast';

export interface HelmProgramParts {
  readonly commands: CommandRunner;
  readonly tasks: StepTasks;
  readonly web: WebClient;
  readonly clock: Clock;
  /** Hex. */
  readonly sha256: (data: Uint8Array) => string;
  /** Where the program stands. */
  readonly folder: AbsolutePath;
  /** As helm names its archives. */
  readonly architecture: 'amd64' | 'arm64';
}

/** The program helm, from the archives of its project. No script of theirs is run. */
export class HelmProgram {
  readonly #parts: HelmProgramParts;

  constructor(parts: HelmProgramParts) {
    this.#parts = parts;
  }

  /** The former program stays until the new one is whole. @throws AgentError `outbound.*`, `command.*`, `instruction.*` */
  async install(version: string, context: StepContext): Promise<StepEnd> {
    const { commands, tasks, folder, architecture } = this.#parts;
    if ((await this.#version(context)) === version) return { done: 'is there already' };
    const name = `helm-v${version}-linux-${architecture}.tar.gz`;
    const expected = new TextDecoder().decode(await this.#fetch(`${name}.sha256sum`, 1024, context)).trim();
    const archive = await this.#fetch(name, MAX_ARCHIVE_BYTES, context);
    const digest = this.#parts.sha256(archive);
    if (expected.split(/\s+/)[0] !== digest) {
      const remedy = 'see that no proxy changes what is downloaded, then send the upgrade again';
      return { cause: `${SERVER}/${name} has the SHA-256 ${digest}, which is not the published one`, remedy };
    }
    const unpacked = await tasks.run(
      {
        ...{ work: context.task, name: 'helm', files: { [ARCHIVE]: archive }, timeoutMs: UNPACK_MS },
        argv: [
          ...(['tar', '--extract', '--gzip', '--file', `%f/${ARCHIVE}`, '--no-same-owner'] as const),
          ...['--directory', folder, `--transform=s,.*,${FRESH},`, `linux-${architecture}/helm`],
        ],
      },
      context,
    );
    if (unpacked.exitCode !== 0) return programFailure('tar', unpacked);
    const argv = ['mv', '--force', '--no-target-directory', `${folder}/${FRESH}`, `${folder}/helm`] as const;
    const moved = await commands.run({ argv, timeoutMs: ASK_MS }, context);
    return moved.exitCode === 0 ? { done: `helm ${version} is installed` } : programFailure('mv', moved);
  }

  #fetch(name: string, maxBytes: number, context: StepContext): Promise<Uint8Array> {
    const { web, clock } = this.#parts;
    return patiently(() => download(web, { url: `${SERVER}/${name}`, guarded: true, maxBytes }, context), clock, context);
  }

  /** Empty where there is no helm. */
  async #version(context: StepContext): Promise<string> {
    const argv = [`${this.#parts.folder}/helm`, 'version', '--short'] as const;
    try {
      return versionIn((await this.#parts.commands.run({ argv, timeoutMs: ASK_MS }, context)).stdout);
    } catch {
      context.signal.throwIfAborted();
      return '';
    }
  }
}
