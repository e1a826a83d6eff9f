import { type HostPort, isHost, portNumber } from '../kernel/network.js';
import { type ApiServer, MAX_SERVERS, serverName } from './model.js';

/** The servers of the newest list, for the next process. */
export function encodeServers(servers: readonly ApiServer[]): string {
  return `${JSON.stringify({ servers: servers.map(({ name, endpoint: { host, port } }) => ({ name, host, port })) })}\n`;
}

/** Undefined for anything but what `encodeServers` made. */
export function decodeServers(text: string): readonly ApiServer[] | undefined {
  const value = parsed(text);
  if (!isObject(value) || !Array.isArray(value.servers) || value.servers.length > MAX_SERVERS) return undefined;
  const servers = value.servers.map(serverOf);
  const known = servers.filter((server) => server !== undefined);
  const names = new Set(known.map(({ name }) => name));
  return known.length > 0 && names.size === servers.length ? known : undefined;
}

function serverOf(value: unknown): ApiServer | undefined {
  if (!isObject(value)) return undefined;
  const { name, host, port } = value;
  const n = typeof name === 'string' ? /^api-([1-9]\d{0,5})$/.exec(name)?.[1] : undefined;
  const endpoint = endpointOf(host, port);
  return n === undefined || endpoint === undefined ? undefined : { name: serverName(Number(n)), endpoint };
}

function endpointOf(host: unknown, port: unknown): HostPort | undefined {
  const number = typeof port === 'number' ? portNumber(port) : undefined;
  return typeof host === 'string' && isHost(host) && number !== undefined ? { host, port: number } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
