import { formatHostPort, type HostPort, hostPort, type PortNumber } from '../kernel/network.js';
import { type Aid, aid, type Nid, nid } from '../link/model.js';

/** Where a node was registered, as its data directory keeps it. */
export interface EnrolmentFile {
  /** Of the mutual channel. */
  readonly servers: readonly HostPort[];
  /** What the control plane called the node: not every one writes that into the certificate. */
  readonly nid: Nid;
  readonly aid: Aid;
}

/** Of the mutual channel, where a file names none. */
const DEFAULT_PORT = 9192 as PortNumber;

export function encodeEnrolment({ servers, nid, aid }: EnrolmentFile): string {
  return `${JSON.stringify({ servers: servers.map(formatHostPort), nid, aid }, undefined, 2)}\n`;
}

/** Undefined when the text is none. */
export function decodeEnrolment(text: string): EnrolmentFile | undefined {
  const fields = fieldsOf(text);
  const servers = serversOf(fields.servers);
  if (servers === undefined || typeof fields.nid !== 'string' || typeof fields.aid !== 'string') return undefined;
  try {
    return { servers, nid: nid(fields.nid), aid: aid(fields.aid) };
  } catch {
    return undefined;
  }
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function serversOf(value: unknown): readonly HostPort[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const servers = value.flatMap((name: unknown) => (typeof name === 'string' ? (hostPort(name, DEFAULT_PORT) ?? []) : []));
  return servers.length === value.length ? servers : undefined;
}
