import type { Ipv4Range } from '../../domain/kernel/network.js';

/** Which addresses are this machine's own beside those of its interfaces: sockets can be bound to them, and packets to them arrive here. */
export interface LocalRoutes {
  /**
   * All addresses of the ranges, and no others that an earlier call gave. The same again changes nothing. They outlive the process: services
   * are reached while the agent restarts.
   * @throws AgentError `dataplane.routes_not_set`
   */
  set(ranges: readonly Ipv4Range[]): void;
}
