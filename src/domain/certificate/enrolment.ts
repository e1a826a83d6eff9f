import { formatHostPort, type HostPort, hostPort, type PortNumber } from '../kernel/network.js';

/** Where a node was registered, as its data directory keeps it. */
export interface EnrolmentFile {
  /** Of the mutual channel. */
  readonly servers: readonly HostPort[];
}

/** Of the mutual channel, where a file names none. */
const DEFAULT_PORT = 9192 as PortNumber;

export function encodeEnrolment({ servers }: EnrolmentFile): string {
  return `${JSON.stringify({ servers: servers.map(formatHostPort) }, undefined, 2)}\n`;
}

/** Undefined when the text is none. */
export function decodeEnrolment(text: string): EnrolmentFile | undefined {
  const names = serverNames(text);
  const servers = names?.flatMap((name) => hostPort(name, DEFAULT_PORT) ?? []);
  return servers === undefined || servers.length === 0 || servers.length !== names?.length ? undefined : { servers };
}

function serverNames(text: string): readonly string[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const servers = typeof value === 'object' && value !== null && 'servers' in value ? value.servers : undefined;
    return Array.isArray(servers) && servers.every((name) => typeof name === 'string') ? servers : undefined;
  } catch {
    return undefined;
  }
}
