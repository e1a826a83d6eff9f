import type { DataPathChoice } from '../dataplane/data-path.js';
import type { HealthSpec } from '../dataplane/health.js';
import type { Algorithm, Locality, Protocol } from '../dataplane/model.js';
import type { NodeName } from '../identity/model.js';
import type { Brand } from '../kernel/brand.js';
import type { IpAddress, PortNumber } from '../kernel/network.js';
import { type LogKey, logKey } from '../log/model.js';

export const API_VERSION = 'holdfast/v1';
export const DEFAULT_NAMESPACE = 'default';

/** The kinds that can be applied. */
export const KINDS = ['Service', 'Endpoints'] as const;
export type Kind = (typeof KINDS)[number];

/** Who last applied a resource: only that source's `--prune` removes it. */
export type Source = Brand<string, 'Source'>;
/** `namespace/name`, both DNS-1123 labels. */
export type QualifiedName = Brand<string, 'QualifiedName'>;

export interface ResourceRef {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

export interface Metadata {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A service port. What endpoints listen on is `targetPort` unless they say otherwise. */
export interface ServicePort {
  readonly name: string;
  readonly port: PortNumber;
  readonly targetPort: PortNumber;
  readonly protocol: Protocol;
}

export interface EndpointSpec {
  readonly name: string;
  readonly address: IpAddress;
  /** For services with one port. */
  readonly port?: PortNumber | undefined;
  /** By the service port's name. */
  readonly ports?: Readonly<Record<string, PortNumber>> | undefined;
  /** 1 to 100. */
  readonly weight: number;
  /** The node that it runs on: for locality, and that node checks its health. */
  readonly node?: NodeName | undefined;
}

export interface PublishedEndpoint extends EndpointSpec {
  /** One that is not ready gets no new connections; running ones drain. */
  readonly ready: boolean;
}

export interface ServiceSpec {
  readonly ports: readonly ServicePort[];
  /** Asked for by the manifest; otherwise the allocator chooses. */
  readonly vip?: IpAddress | undefined;
  readonly balance: { readonly algorithm: Algorithm; readonly locality: Locality };
  /** A client's address keeps its endpoint for this long after its last new connection. */
  readonly affinity?: { readonly clientIP: { readonly timeout: string } } | undefined;
  /** For each port of the service, on each node. */
  readonly limits?: { readonly connections: number } | undefined;
  /** For its TCP ports. */
  readonly proxyProtocol?: { readonly accept: boolean; readonly send?: 'v1' | 'v2' | undefined } | undefined;
  /** A duration as written; without it TCP connections never end for being idle, and UDP flows after 60 s. */
  readonly idleTimeout?: string | undefined;
  readonly health?: HealthSpec | undefined;
  /** While the node does not know the present state: go on with the last known one, which is the default, or refuse new connections. */
  readonly onStale?: 'serve' | 'refuse' | undefined;
  /** Who carries it on nodes whose kernel can; `auto` when left out. */
  readonly dataPath?: DataPathChoice | undefined;
  /** A duration as written, `30s`. */
  readonly drain: { readonly timeout: string };
  readonly endpoints: readonly EndpointSpec[];
}

export interface EndpointsSpec {
  /** Name of the service in the same namespace; it may not exist yet. */
  readonly service: string;
  readonly endpoints: readonly PublishedEndpoint[];
}

interface Envelope<K extends Kind, Spec> {
  readonly kind: K;
  readonly metadata: Metadata;
  readonly spec: Spec;
}

export type ServiceResource = Envelope<'Service', ServiceSpec>;
export type EndpointsResource = Envelope<'Endpoints', EndpointsSpec>;

/** A document after validation and defaulting. */
export type Resource = ServiceResource | EndpointsResource;

/** A resource as the log holds it. */
export type Stored<R extends Resource = Resource> = R & { readonly source: Source };

export function qualifiedName(namespace: string, name: string): QualifiedName {
  return `${namespace}/${name}` as QualifiedName;
}

export function nameOf(resource: Resource): QualifiedName {
  return qualifiedName(resource.metadata.namespace, resource.metadata.name);
}

export function refOf(resource: Resource): ResourceRef {
  return { kind: resource.kind, namespace: resource.metadata.namespace, name: resource.metadata.name };
}

/** The key of a resource. @throws RangeError when `ref` cannot name one. */
export function resourceKey(ref: ResourceRef): LogKey {
  return logKey(keyText(ref));
}

/** For looking up what somebody typed, which may be no key at all. */
export function keyText({ kind, namespace, name }: ResourceRef): string {
  return `${kind.toLowerCase()}/${namespace}/${name}`;
}

/** `service/hello`, as people type it. */
export function formatRef({ kind, namespace, name }: ResourceRef): string {
  const short = `${kind.toLowerCase()}/${name}`;
  return namespace === DEFAULT_NAMESPACE ? short : `${short} (namespace ${namespace})`;
}

export function source(text: string): Source {
  return text as Source;
}
