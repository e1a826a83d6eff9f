import { formatHostPort, type HostPort } from '../kernel/network.js';
import { type ApiServer, type ServerName, serverName } from './model.js';

/**
 * Gives each endpoint a server: its own of before, or else one of the lowest number that nobody has, and that HAProxy has for none that
 * still drains. In the order of the numbers: the same endpoints in another order are the same servers.
 */
export function nameServers(
  endpoints: readonly HostPort[],
  before: readonly ApiServer[],
  running: readonly string[],
): readonly ApiServer[] {
  const known = new Map(before.map((server) => [formatHostPort(server.endpoint), server]));
  const kept = endpoints.flatMap((endpoint) => known.get(formatHostPort(endpoint)) ?? []);
  const taken = new Set<string>([...running, ...kept.map(({ name }) => name)]);
  const added = endpoints
    .filter((endpoint) => !known.has(formatHostPort(endpoint)))
    .map((endpoint) => {
      const name = freeName(taken);
      taken.add(name);
      return { name, endpoint };
    });
  return [...kept, ...added].sort((a, b) => numberOf(a.name) - numberOf(b.name));
}

function freeName(taken: ReadonlySet<string>): ServerName {
  let n = 1;
  while (taken.has(serverName(n))) n++;
  return serverName(n);
}

function numberOf(name: ServerName): number {
  return Number(name.slice('api-'.length));
}
