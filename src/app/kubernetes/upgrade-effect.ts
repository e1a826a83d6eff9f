import type { Answer } from '../../domain/instruction/model.js';
import { AgentError, errorCodes } from '../../domain/kernel/errors.js';
import {
  failedAnswer,
  parsePlace,
  placeText,
  type StepFailure,
  skewProblem,
  type UpgradePlan,
  upgradedAnswer,
  upgradeSteps,
} from '../../domain/kubernetes/upgrade.js';
import type { Logger } from '../../ports/logger.js';
import type { EffectContext } from '../instruction/effects.js';
import type { UpgradeLog } from './upgrade-log.js';
import type { StepEnd } from './upgrade-step.js';
import type { UpgradeSteps } from './upgrade-steps.js';

export interface UpgradeEffectParts {
  readonly steps: Pick<UpgradeSteps, 'run' | 'kubeletVersion'>;
  readonly log: Pick<UpgradeLog, 'say'>;
  readonly logger: Logger;
}

/** Brings the Kubernetes of this node to another version, one journalled step after the other. */
export class UpgradeEffect {
  readonly #parts: UpgradeEffectParts;

  constructor(parts: UpgradeEffectParts) {
    this.#parts = parts;
  }

  /**
   * A later attempt goes on at the step that the first one had reached. Every failure is an answer with `success`=false that names the
   * step. On abort the program of the running step goes on to its end, and no further step begins.
   */
  async run(plan: UpgradePlan, context: EffectContext): Promise<Answer> {
    const { steps, log } = this.#parts;
    const before = parsePlace(context.step);
    const from = before?.from ?? (await steps.kubeletVersion(context));
    const refusal = before === undefined ? refusalOf(from, plan) : undefined;
    if (refusal !== undefined) return this.#failed('versions', refusal, from, context);
    log.say(
      `upgrade of Kubernetes from ${from} to ${plan.kubernetes}${before === undefined ? '' : ` goes on at ${before.step}`}`,
      'info',
    );
    const first = before === undefined ? 0 : upgradeSteps.indexOf(before.step);
    for (const [index, step] of upgradeSteps.entries()) {
      if (index < first) continue;
      context.signal.throwIfAborted();
      await context.reached(placeText({ from, step }));
      const warn = (message: string) => log.say(`${step}: ${message}`, 'warning');
      const end = await this.#step(() => steps.run(step, plan, { ...context, isAgain: before?.step === step, warn }), context);
      if ('cause' in end) return this.#failed(step, end, from, context);
      log.say(`${step}: ${end.done}`, 'info');
    }
    const message = `Kubernetes ${plan.kubernetes} runs on this node`;
    return upgradedAnswer(message, { previousVersion: from, newVersion: plan.kubernetes });
  }

  /** What a step throws, other than on abort or without a journal, is its failure. */
  async #step(work: () => Promise<StepEnd>, { signal }: EffectContext): Promise<StepEnd> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AgentError)) throw error;
      return { cause: error.message, remedy: errorCodes[error.code].remedy };
    }
  }

  async #failed(step: string, failure: StepFailure, from: string, context: EffectContext): Promise<Answer> {
    const { steps, log, logger } = this.#parts;
    logger.error('an upgrade of Kubernetes failed', { step, ...failure });
    log.say(`${step}: ${failure.cause}; what to do: ${failure.remedy}`, 'error');
    const newVersion = await steps.kubeletVersion(context);
    return failedAnswer(step, failure, { previousVersion: from, newVersion });
  }
}

function refusalOf(from: string, { kubernetes }: UpgradePlan): StepFailure | undefined {
  if (from === '') return { cause: 'this machine has no kubelet', remedy: 'send it to a node of a cluster of Kubernetes' };
  const cause = skewProblem(from, kubernetes);
  return cause === undefined ? undefined : { cause, remedy: 'send it with the version that comes next' };
}
