import { VIP_RANGE_KEY, type VipRange } from '../../domain/dataplane/vip.js';
import { ZERO_REVISION } from '../../domain/log/model.js';
import { planVipRange } from '../../domain/resource/plan.js';
import type { OrderedLog } from '../../ports/log/ordered-log.js';
import type { StateView } from '../../ports/log/state-view.js';
import type { Subsystem } from '../agent/subsystem.js';

/** Writes what a log is begun with, and refuses to go on with a configuration that contradicts it. */
export class ControlPlaneSubsystem implements Subsystem {
  readonly name = 'control-plane';
  readonly #log: OrderedLog;
  readonly #view: StateView;
  readonly #range: VipRange;

  constructor(log: OrderedLog, view: StateView, range: VipRange) {
    this.#log = log;
    this.#view = view;
    this.#range = range;
  }

  /** @throws AgentError `vip.range_changed` */
  async start(signal: AbortSignal): Promise<void> {
    for (;;) {
      const head = await this.#log.head({ signal });
      await this.#view.reached(head.revision, { signal });
      const changes = planVipRange(this.#view.state, this.#range);
      if (changes.length === 0) return;
      const preconditions = [{ key: VIP_RANGE_KEY, revision: ZERO_REVISION }];
      const result = await this.#log.propose({ changes, preconditions }, { signal });
      // Another first start was quicker: what it wrote is looked at.
      if (result.outcome === 'conflict') continue;
      return this.#view.reached(result.revision, { signal });
    }
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {}
}
