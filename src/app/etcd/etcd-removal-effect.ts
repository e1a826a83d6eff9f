import { type EtcdRemovalPlan, formatMemberId, type MemberId, parseMemberId } from '../../domain/etcd/model.js';
import { memberAt } from '../../domain/etcd/plan.js';
import { type Answer, NO_CONTENT } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { EffectContext } from '../instruction/effects.js';
import type { EtcdMembershipService } from './etcd-membership-service.js';

const STEP = 'member ';

/** Removes the member that has an address, and never another one that has it later (engine.md A8). */
export class EtcdRemovalEffect {
  readonly #membership: EtcdMembershipService;

  constructor(membership: EtcdMembershipService) {
    this.#membership = membership;
  }

  /**
   * The id is journalled before anything is done; a second attempt removes that one, or finds it gone.
   * @throws AgentError `etcd.refused`, `etcd.unavailable`
   */
  async run({ address }: EtcdRemovalPlan, context: EffectContext): Promise<Answer> {
    const id = chosenBefore(context.step) ?? (await this.#choose(address, context));
    if (id !== undefined) await this.#membership.removeIfThere(id, context);
    return NO_CONTENT;
  }

  async #choose(address: EtcdRemovalPlan['address'], context: EffectContext): Promise<MemberId | undefined> {
    const choice = memberAt(await this.#membership.agreed(context), address);
    if ('problem' in choice) throw new AgentError('etcd.refused', { problem: choice.problem });
    if (choice.id !== undefined) await context.reached(`${STEP}${formatMemberId(choice.id)}`);
    return choice.id;
  }
}

function chosenBefore(step: string | undefined): MemberId | undefined {
  return step?.startsWith(STEP) ? parseMemberId(step.slice(STEP.length)) : undefined;
}
