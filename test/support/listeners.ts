import type { L4Endpoint, ListenerId } from '../../src/domain/dataplane/model.js';
import { type IpAddress, ipAddress, portNumber } from '../../src/domain/kernel/network.js';
import type { ListenerSpec } from '../../src/ports/dataplane/data-plane.js';

export function address(text: string): IpAddress {
  const parsed = ipAddress(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

export const loopback = address('127.0.0.1');

export function endpoint(port: number, weight = 1, at = loopback, tier = 0): L4Endpoint {
  const parsed = portNumber(port);
  if (parsed === undefined) throw new Error(`not a port: ${port}`);
  return { address: at, port: parsed, weight, tier, local: true };
}

/** On a free port of 127.0.0.1, round-robin, with ten seconds to drain, unless `changes` say otherwise. */
export function listener(
  id: string,
  endpoints: readonly L4Endpoint[],
  changes: Partial<Omit<ListenerSpec, 'id'>> = {},
): ListenerSpec {
  return {
    id: id as ListenerId,
    address: loopback,
    listenPort: 0,
    protocol: 'tcp',
    algorithm: 'round-robin',
    affinityMs: 0,
    drainMs: 10_000,
    idleMs: 0,
    maxConnections: 0,
    acceptProxy: false,
    refuse: false,
    sendProxy: 0,
    path: 'proxy',
    endpoints,
    ...changes,
  };
}
