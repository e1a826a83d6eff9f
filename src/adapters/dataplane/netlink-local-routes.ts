import { AgentError } from '../../domain/kernel/errors.js';
import { formatIpv4Range, type Ipv4Range } from '../../domain/kernel/network.js';
import type { LocalRoutes } from '../../ports/dataplane/local-routes.js';
import type { Addon } from './addon.js';

/** Local routes over rtnetlink(7), marked with protocol 202. Needs CAP_NET_ADMIN. */
export class NetlinkLocalRoutes implements LocalRoutes {
  readonly #addon: Addon;

  constructor(addon: Addon) {
    this.#addon = addon;
  }

  set(ranges: readonly Ipv4Range[]): void {
    const prefixes = ranges.map(formatIpv4Range);
    try {
      this.#addon.setLocalRoutes(prefixes);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      throw new AgentError(
        'dataplane.routes_not_set',
        { problem: `routes for ${prefixes.join(', ')}: ${problem}` },
        { cause: error },
      );
    }
  }
}
