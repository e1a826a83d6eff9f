import { API_VERSION, type Resource, type ResourceRef, type Stored } from './model.js';

/** A resource as people and their tools read it: the manifest with defaults, its revision and what has become of it. */
export interface ResourceObject {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: Resource['kind'];
  readonly metadata: Resource['metadata'] & { readonly revision: string; readonly source: string };
  readonly spec: Resource['spec'];
  readonly status?: ServiceStatus;
}

export interface ServiceStatus {
  readonly vip: string;
  readonly ports: readonly PortStatus[];
  readonly endpoints: readonly EndpointStatus[];
}

export interface PortStatus {
  readonly name: string;
  readonly port: number;
  readonly state: string;
  /** What it is bound to; absent while it is not. */
  readonly listen?: string;
  /** Why it failed, and what to do. */
  readonly reason?: string;
  readonly remedy?: string;
}

export interface EndpointStatus {
  readonly name: string;
  /** Where it is dialled for each port of the service, in the service's order. */
  readonly targets: readonly EndpointTarget[];
  /** `inline`, or the Endpoints object that published it. */
  readonly source: string;
  readonly weight: number;
  readonly ready: boolean;
  readonly node?: string;
  /** What checks have found; absent when the service has none. */
  readonly health?: EndpointHealth;
}

export interface EndpointHealth {
  /** `unknown` before the first verdict: used like a healthy one. */
  readonly state: 'healthy' | 'unhealthy' | 'unknown';
  readonly reason?: string;
  /** RFC 3339. */
  readonly since?: string;
}

export interface EndpointTarget {
  /** The service port's name. */
  readonly port: string;
  /** `127.0.0.1:18081` */
  readonly address: string;
}

export function renderObject({ kind, metadata, spec, source }: Stored, revision: bigint, status?: ServiceStatus): ResourceObject {
  const { name, namespace, labels } = metadata;
  return {
    apiVersion: API_VERSION,
    kind,
    metadata: { name, namespace, labels, revision: String(revision), source },
    spec,
    ...(status === undefined ? {} : { status }),
  };
}

/** What could be applied again: without revision, source and status. */
export function renderManifest({ kind, metadata, spec }: Resource): object {
  return { apiVersion: API_VERSION, kind, metadata, spec };
}

export function compareRefs(a: ResourceRef, b: ResourceRef): number {
  return compare(a.kind, b.kind) || compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
