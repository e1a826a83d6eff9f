import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { AppliedResource, ManifestProblem, Resources } from '../../ports/driving/resources.js';
import type { Logger } from '../../ports/logger.js';
import type { ManifestSource, Manifests } from '../../ports/resource/manifest-source.js';

/** Applies manifests of a folder or file at the start, and with `follow` whenever they change. */
export class ManifestFollower {
  readonly #source: ManifestSource;
  readonly #resources: Resources;
  readonly #logger: Logger;
  readonly #prune: boolean;
  #wasEmpty = false;

  constructor(source: ManifestSource, resources: Resources, logger: Logger, prune: boolean) {
    this.#source = source;
    this.#resources = resources;
    this.#logger = logger;
    this.#prune = prune;
  }

  /**
   * Nothing to apply is a mistake, unless what was removed from the files is to be removed: then it may be meant, and is told.
   * @throws AgentError `resource.invalid` with every problem; then nothing was changed
   */
  async applyOnce(options: CallOptions): Promise<readonly AppliedResource[]> {
    const manifests = await this.#source.read(options);
    this.#checkEmpty(manifests.documents.length === 0);
    const call = { documents: manifests.documents, source: this.#source.name, prune: this.#prune, dryRun: false };
    const outcome = await this.#resources.apply(call, options);
    if (outcome.outcome === 'applied') return outcome.resources;
    throw new AgentError('resource.invalid', { problem: describe(outcome.problems, manifests) });
  }

  /** @throws AgentError `resource.invalid` */
  #checkEmpty(empty: boolean): void {
    const problem = `no document in ${this.#source.name}`;
    if (empty && !this.#prune) throw new AgentError('resource.invalid', { problem });
    if (empty && !this.#wasEmpty) this.#logger.warn(problem);
    this.#wasEmpty = empty;
  }

  /** Until abort. What is wrong with the manifests is told, and what was applied before stays. */
  async follow({ signal }: CallOptions): Promise<void> {
    for await (const _ of this.#source.changes({ signal })) {
      try {
        const changed = (await this.applyOnce({ signal })).filter(({ action }) => action !== 'unchanged');
        for (const { ref, action, addresses } of changed) {
          this.#logger.info(`${ref.kind.toLowerCase()} ${ref.namespace}/${ref.name} ${action}`, { addresses });
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#logger.error(error instanceof Error ? error.message : String(error));
      }
    }
  }
}

function describe(problems: readonly ManifestProblem[], manifests: Manifests): string {
  return problems.map((problem) => manifests.describe(problem)).join('\n  ');
}
