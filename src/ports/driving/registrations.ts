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
  /** Of the certificate that it calls with, hex. */
  readonly serial: string;
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
  /**
   * The certificate with this serial, of a node or of somebody who operates the control plane, is refused from now on, and what was opened
   * with it ends within a second; its node stays. False when nobody has one with this serial. The same again changes nothing.
   * @throws AgentError `store.unavailable`, `store.outcome_unknown`
   */
  revokeCertificate(serial: string, reason: string, options: CallOptions): Promise<boolean>;
}
