import { formatHostPort, type HostPort, hostPort, ipAddress, ipv4ToNumber, isIpv6, type PortNumber } from '../kernel/network.js';
import { API_SERVER_PORT, BALANCER_PORT, MAX_SERVERS } from './model.js';

/** A list of API servers, or why it is none. */
export type Endpoints =
  | { readonly ok: true; readonly endpoints: readonly HostPort[] }
  | { readonly ok: false; readonly problem: string };

/** Of an endpoint that is quoted. */
const MAX_QUOTED = 100;

/**
 * `https://host:port` or `host:port` each; what is there twice counts once, and an empty list is one. One that is anything else refuses
 * the whole list: the servers that a list lacks lose their traffic.
 */
export function readEndpoints(value: unknown): Endpoints {
  if (!Array.isArray(value)) return { ok: false, problem: 'it is no list of endpoints' };
  if (value.length > MAX_SERVERS) return { ok: false, problem: `it has ${value.length} endpoints, ${MAX_SERVERS} at most` };
  const found = new Map<string, HostPort>();
  for (const text of value) {
    const endpoint = typeof text === 'string' ? endpointOf(text) : undefined;
    if (endpoint === undefined) return { ok: false, problem: `${quoted(text)} is no endpoint of an API server` };
    found.set(formatHostPort(endpoint), endpoint);
  }
  return { ok: true, endpoints: [...found.values()] };
}

function endpointOf(text: string): HostPort | undefined {
  const bare = text.startsWith('https://') ? text.slice('https://'.length).replace(/\/$/, '') : text;
  const endpoint = hostPort(bare, API_SERVER_PORT as PortNumber);
  // Another node's balancer, or this one: connections would go round for ever.
  if (endpoint === undefined || endpoint.port === BALANCER_PORT || !isReachable(endpoint.host)) return undefined;
  return { host: endpoint.host.toLowerCase(), port: endpoint.port };
}

/** Names, and addresses that are one host's: not those of no host, nor of many. */
function isReachable(host: string): boolean {
  const address = ipAddress(host);
  if (address === undefined) return true;
  if (isIpv6(address)) return address !== '::' && !address.startsWith('ff') && !address.startsWith('::ffff:');
  const first = Math.floor((ipv4ToNumber(address) ?? 0) / 2 ** 24);
  return first !== 0 && first < 224;
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}...` : text;
}
