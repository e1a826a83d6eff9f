import { formatHostPort, ipAddress } from '../kernel/network.js';
import { type ApiServer, BACKEND, FRONTEND } from './model.js';

/** First line of every file that is ours. */
export const MARK = '# Written by Holdfast from the list of its control plane: what is changed here is changed back.';

/** A control plane is left after 6 s without an answer, and is back after 4 s with one. */
const CHECK = 'check inter 2s fall 3 rise 2 on-marked-down shutdown-sessions';

/** For a server of the file and one that is added at run time, which no `default-server` is for. */
export const SERVER_OPTIONS = CHECK;

export interface BalancerSettings {
  readonly port: number;
  /** Where HAProxy's runtime API is. */
  readonly socket: string;
  /** Without it, an IPv6 socket cannot be made. */
  readonly hasIpv6: boolean;
  /** How long a connection may say nothing before it is taken for one, seconds. */
  readonly requestSeconds: number;
}

/** A configuration of HAProxy, and what its running process says that it is: all but the servers, which are seen one by one. */
export interface Rendered {
  readonly text: string;
  readonly description: string;
}

/**
 * The whole file. Of the servers nothing gets in but what their parsed addresses, names and numbers are made of.
 * @param sha256 hex
 */
export function renderConfig(
  servers: readonly ApiServer[],
  settings: BalancerSettings,
  sha256: (text: string) => string,
): Rendered {
  const description = `holdfast ${sha256(sections(servers, settings, '', [])).slice(0, 16)}`;
  return { text: sections(servers, settings, description, servers.map(serverLine)), description };
}

function sections(
  servers: readonly ApiServer[],
  { port, socket, hasIpv6, requestSeconds }: BalancerSettings,
  description: string,
  serverLines: readonly string[],
): string {
  return `${MARK}
global
    description ${description}
    stats socket ${socket} mode 600 level admin expose-fd listeners
    chroot /var/lib/haproxy
    user haproxy
    group haproxy
    # A worker that was replaced keeps its streams for an hour, and over the next reload: while it ends, there are two of them.
    hard-stop-after 1h
    mworker-max-reloads 1

defaults
    mode tcp
    retries 3
    option redispatch 1
    timeout connect 3s
    timeout check 3s
    timeout queue 5s
    timeout client ${requestSeconds}s
    timeout server ${requestSeconds}s
    timeout client-fin 30s
    timeout server-fin 30s
    # Watches, logs and shells: the API server and the kubelet end them sooner, and a dead peer is noticed by the probes below.
    timeout tunnel 24h
    option clitcpka
    clitcpka-idle 60s
    clitcpka-intvl 10s
    clitcpka-cnt 6
    option srvtcpka
    srvtcpka-idle 60s
    srvtcpka-intvl 10s
    srvtcpka-cnt 6
${servers.some(isNamed) ? '\nresolvers node\n    parse-resolv-conf\n' : ''}
frontend ${FRONTEND}
    bind ${hasIpv6 ? `:::${port} v4v6` : `*:${port}`}
    # A tunnel begins with the client's first byte, as of TLS; before it, the time-out of requests is in force.
    tcp-request inspect-delay ${requestSeconds}s
    tcp-request content accept if { req.len gt 0 }
    tcp-request content reject
    default_backend ${BACKEND}

backend ${BACKEND}
    balance leastconn
${serverLines.map((line) => `${line}\n`).join('')}`;
}

function serverLine(server: ApiServer): string {
  const named = isNamed(server) ? ' resolvers node init-addr last,libc,none' : '';
  return `    server ${server.name} ${formatHostPort(server.endpoint)} ${SERVER_OPTIONS}${named}`;
}

function isNamed({ endpoint }: ApiServer): boolean {
  return ipAddress(endpoint.host) === undefined;
}

/**
 * Whether a file may be replaced: ours, that of an agent before us, and one that serves nothing, as Debian's own. Somebody else's HAProxy
 * is left alone.
 * @param isKnown it was written by this node before, whatever has become of it
 */
export function mayReplace(text: string, isKnown: boolean): boolean {
  if (isKnown || text.startsWith(MARK)) return true;
  const sectionsOf = [...text.matchAll(/^[ \t]*(frontend|backend|listen|peers|program)[ \t]+(\S+)/gm)];
  const names = sectionsOf.map(([, kind, name]) => `${kind} ${name}`);
  return names.every((section) => section === `frontend ${FRONTEND}` || section === `backend ${BACKEND}`);
}
