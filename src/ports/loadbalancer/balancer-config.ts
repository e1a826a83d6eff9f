import type { ApiServer } from '../../domain/loadbalancer/model.js';
import type { CallOptions } from '../call-options.js';

/** The configuration file of HAProxy, and what is remembered of the newest list. */
export interface BalancerConfig {
  /** Whether the kernel has IPv6. */
  hasIpv6(options: CallOptions): Promise<boolean>;

  /** Undefined when there is none. @throws AgentError `loadbalancer.unusable`: something else stands there, or it cannot be read */
  read(options: CallOptions): Promise<string | undefined>;

  /**
   * What HAProxy itself has against such a file, undefined when it takes it, with warnings or without. Nothing that it serves changes.
   * @throws AgentError `command.*`: HAProxy cannot be asked
   */
  test(text: string, options: CallOptions): Promise<string | undefined>;

  /**
   * Puts it in place whole. Durable when it resolves; on abort, failure or a crash the old or the new one is there.
   * @throws AgentError `loadbalancer.unusable`
   */
  place(text: string, options: CallOptions): Promise<void>;

  /** Undefined when nothing is, or it cannot be read: the next list mends it. */
  remembered(options: CallOptions): Promise<readonly ApiServer[] | undefined>;

  /** Durable when it resolves. @throws AgentError `loadbalancer.unusable` */
  remember(servers: readonly ApiServer[], options: CallOptions): Promise<void>;
}
