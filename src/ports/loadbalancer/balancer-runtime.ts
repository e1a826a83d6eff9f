import type { RunningBalancer, RuntimeStep } from '../../domain/loadbalancer/model.js';
import type { CallOptions } from '../call-options.js';

/** HAProxy as it runs, by its runtime API. */
export interface BalancerRuntime {
  /** The worker that takes new connections, as it is now; undefined when none answers within 3 s. */
  observe(options: CallOptions): Promise<RunningBalancer | undefined>;

  /**
   * One step of a plan, in its worker's memory alone. A `remove` of a server whose last connections are still ending leaves it in
   * maintenance, for the next one.
   * @throws AgentError `loadbalancer.not_changed`: it refuses, or does not answer within 3 s; then it was done or not
   */
  change(step: RuntimeStep, options: CallOptions): Promise<void>;
}
