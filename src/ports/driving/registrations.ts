import type { Aid, Nid, RegistrationId } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';

/** A machine that has registered. */
export interface RegisteredNode {
  readonly nid: Nid;
  readonly aid: Aid;
  readonly registration: RegistrationId;
  /** `<ID>-<VERSION_ID>`, as it said. */
  readonly os: string;
  /** Wall clock, milliseconds. */
  readonly registeredAt: number;
}

/** The nodes that the control plane knows, connected or not. */
export interface Registrations {
  /** @throws AgentError `store.unavailable` */
  get(nid: Nid, options: CallOptions): Promise<RegisteredNode | undefined>;
  /** Sorted by id. @throws AgentError `store.unavailable` */
  list(options: CallOptions): Promise<readonly RegisteredNode[]>;
  /**
   * The node is no more, and no certificate of it is accepted again. False when there is none.
   * @throws AgentError `store.unavailable`, `store.outcome_unknown`
   */
  remove(nid: Nid, options: CallOptions): Promise<boolean>;
}
