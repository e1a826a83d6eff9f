import type { Roles } from '../../domain/link/roles.js';
import type { CallOptions } from '../call-options.js';

/** What this node is in its Kubernetes cluster. */
export interface NodeRoles {
  /**
   * Read anew, nothing is remembered: a node that has no Kubernetes is `not_installed`. On abort it rejects.
   * @throws AgentError `link.roles_unreadable` when the cluster does not say; that is no reason to take a role away
   */
  read(options: CallOptions): Promise<Roles>;
}
