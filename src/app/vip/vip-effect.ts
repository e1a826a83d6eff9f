import type { Answer } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { VipPlan } from '../../domain/vip/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { VipKeeper } from './vip-keeper.js';

/** What VIP_ASSIGN and VIP_RELEASE do. */
export class VipEffect {
  readonly #keeper: VipKeeper | undefined;
  readonly #bootTime: () => number;

  /** Without a keeper this node has no virtual IP: it takes none, and has none to release. */
  constructor(keeper: VipKeeper | undefined, bootTime: () => number) {
    this.#keeper = keeper;
    this.#bootTime = bootTime;
  }

  /** @throws AgentError `vip.*`, `journal.unavailable`: then nothing is in force */
  async run(plan: VipPlan, context: CallOptions & { readonly receivedAt: number | undefined }): Promise<Answer> {
    const keeper = this.#keeper;
    switch (plan.do) {
      case 'assign_vip': {
        if (keeper === undefined) throw new AgentError('vip.not_configured', { problem: 'this node has no `vip.address`' });
        const outcome = await keeper.assign(plan.generation, context.receivedAt ?? this.#bootTime(), context);
        return answer('VIP_ASSIGN_RESPONSE', outcome.done === 'done' ? '' : late(plan.generation, outcome.known));
      }
      case 'release_vip': {
        if (keeper === undefined) return answer('VIP_RELEASE_RESPONSE', 'this node has no virtual IP');
        const outcome = await keeper.release(plan.generation, context);
        return answer('VIP_RELEASE_RESPONSE', outcome.done === 'done' ? '' : late(plan.generation, outcome.known));
      }
    }
  }
}

function late(generation: bigint, known: bigint): string {
  return `generation ${generation} is not greater than ${known}, the last that was applied: nothing was done`;
}

function answer(type: string, message: string): Answer {
  return { kind: 'json', type, value: { ok: true, message } };
}
