import type { Brand } from '../kernel/brand.js';
import type { HostPort, IpAddress } from '../kernel/network.js';

/** Where every node has the API of its cluster, whichever of its control planes answer. */
export const BALANCER_PORT = 6_446;
/** Of an API server whose endpoint names no port. */
export const API_SERVER_PORT = 6_443;
/** Where the sections of the configuration have their names from: existing nodes have them, and so have tools that read them. */
export const FRONTEND = 'k8s_api';
export const BACKEND = 'k8s_api_backend';
/** An etcd has 7 members at most in practice, and a list has one API server a member. */
export const MAX_SERVERS = 64;

/** `api-<n>`, which an endpoint keeps for as long as it is in the list. */
export type ServerName = Brand<string, 'ServerName'>;

export function serverName(n: number): ServerName {
  return `api-${n}` as ServerName;
}

export interface ApiServer {
  readonly name: ServerName;
  readonly endpoint: HostPort;
}

/** A server of the running HAProxy's backend, by its runtime API. */
export interface RunningServer {
  readonly name: string;
  /** Undefined for a name that is not resolved. */
  readonly address: IpAddress | undefined;
  readonly port: number;
  /** Of one that was given by name; empty for an address. */
  readonly host: string;
  /** `drain`: it gets no new connections. `maint`: it has none, and is not checked. */
  readonly admin: 'ready' | 'drain' | 'maint';
  readonly isChecked: boolean;
  readonly isUp: boolean;
  readonly sessions: number;
  /** Since its state was changed. */
  readonly changedSeconds: number;
}

/** The worker that takes new connections. */
export interface RunningBalancer {
  /** Another process has another one, and each reload makes one. */
  readonly pid: number;
  /** What its configuration is described as; empty for one that is not ours. */
  readonly description: string;
  /** Of our backend; empty where it has none. */
  readonly servers: readonly RunningServer[];
}

/** One call of the runtime API. Each may be repeated. */
export type RuntimeStep =
  | { readonly do: 'add'; readonly name: ServerName; readonly address: IpAddress; readonly port: number }
  /** Checked, and given connections. */
  | { readonly do: 'ready'; readonly name: string }
  | { readonly do: 'drain'; readonly name: string }
  /** Ends what it still has. */
  | { readonly do: 'remove'; readonly name: string };
