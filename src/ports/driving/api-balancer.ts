import type { CallOptions } from '../call-options.js';

/** The balancer of the cluster's API on this node, as it was seen last. */
export interface BalancerStatus {
  /** `absent`: this machine has no HAProxy. `waiting`: no list has come yet. `failing`: see the problems of the node. */
  readonly state: 'absent' | 'waiting' | 'serving' | 'failing';
  readonly port: number;
  readonly servers: readonly BalancedServer[];
  /** Times that HAProxy was reloaded, since the start of the agent. */
  readonly reloads: number;
  /** Times that its servers were changed without a reload. */
  readonly changes: number;
}

export interface BalancedServer {
  readonly name: string;
  /** Host and port. */
  readonly endpoint: string;
  /** `draining`: it has left the list and ends what it has. `unknown`: HAProxy does not say. */
  readonly state: 'up' | 'down' | 'draining' | 'unknown';
  /** Open connections. */
  readonly sessions: number;
}

/** The balancer, for those who operate the node. */
export interface ApiBalancer {
  status(): BalancerStatus;
  /** Asks the control plane for the list now, and brings HAProxy to it. @throws AgentError `loadbalancer.*`, `link.*`, `service.*`, `command.*` */
  refresh(options: CallOptions): Promise<BalancerStatus>;
}
