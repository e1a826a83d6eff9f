import { NO_CONTENT } from '../../domain/instruction/model.js';
import type { RemovalPlan } from '../../domain/uninstall/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { TaskId } from '../../ports/instruction/task-runner.js';
import type { EffectContext, EffectResult } from '../instruction/effects.js';
import type { RemovalOrders } from './removal-orders.js';

export interface RemovalEffectParts {
  readonly orders: RemovalOrders;
  readonly clock: Clock;
  /** Starts the program that carries the order out, outside of this process and its control group; the one that runs already is enough. */
  readonly launch: (options: CallOptions) => Promise<void>;
}

/** Removes this node: the order is durable before the answer, and is carried out after it (engine.md A8, A16b). */
export class RemovalEffect {
  readonly #parts: RemovalEffectParts;

  constructor(parts: RemovalEffectParts) {
    this.#parts = parts;
  }

  async run(plan: RemovalPlan, context: EffectContext): Promise<EffectResult> {
    const { orders, clock, launch } = this.#parts;
    const command = plan.do === 'reinstall_node' ? plan.command : undefined;
    await orders.give({ task: context.task, command, at: clock.now() }, context);
    return { answer: NO_CONTENT, afterwards: launch };
  }

  /** Whether that instruction has given an order that stands: then it was accepted, whatever became of its answer. */
  async isOrdered(task: TaskId, options: CallOptions): Promise<boolean> {
    return (await this.#parts.orders.read(options))?.task === task;
  }
}
