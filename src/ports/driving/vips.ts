import type { Aid, Nid } from '../../domain/link/model.js';
import type { VipPhase } from '../../domain/vip/fleet.js';
import type { Generation } from '../../domain/vip/model.js';
import type { CallOptions } from '../call-options.js';

/** The virtual IP of an account. */
export interface FleetVip {
  readonly aid: Aid;
  readonly phase: VipPhase;
  /** Who has it, gets it, or gives it back; of a free one who had it last. Empty while nobody has had it. */
  readonly node: Nid | '';
  /** Whom an operator wants to have it; empty when nobody was named. */
  readonly wanted: Nid | '';
  readonly generation: Generation;
  /** Since when it is in this phase, wall clock, milliseconds. */
  readonly since: number;
  /** Nodes that may have it now, sorted. */
  readonly candidates: readonly Nid[];
}

/** The virtual IPs of the accounts, for those who operate the fleet. */
export interface Vips {
  /** Sorted by account; none where no node may have one. @throws AgentError `store.unavailable` */
  list(options: CallOptions): Promise<readonly FleetVip[]>;
  /**
   * The node is to have the virtual IP of its account; resolves when that is noted. It takes some seconds, and up to 36 where the present holder
   * does not answer.
   * @throws AgentError `vip.off`, `vip.no_candidate`, `vip.conflict`, `fleet.unknown_node`, `store.*`
   */
  move(nid: Nid, options: CallOptions): Promise<FleetVip>;
}
