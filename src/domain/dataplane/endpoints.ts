import type { NodeName } from '../identity/model.js';
import { formatAddressPort, isLoopback, type PortNumber } from '../kernel/network.js';
import { type EndpointSpec, nameOf, type ServicePort, type ServiceResource } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import type { HealthSpec, KnownHealth } from './health.js';

/** An endpoint of a service, from whomever it comes. */
export interface KnownEndpoint {
  readonly endpoint: EndpointSpec;
  /** `inline`, or the Endpoints object that published it. */
  readonly source: string;
  /** As its publisher says. */
  readonly ready: boolean;
  /** The `address:port` that is checked; absent when the service has no checks. */
  readonly checked: string | undefined;
  /** What the checks found; an endpoint without it is used. */
  readonly health: KnownHealth | undefined;
}

/** Why an endpoint gets no new connection of one port; in the order in which they are looked at. */
export type Withheld =
  | { readonly why: 'not-ready' }
  | { readonly why: 'unhealthy'; readonly reason: string; readonly since: number }
  | { readonly why: 'other-node' }
  /** An earlier one has the same address and port. */
  | { readonly why: 'duplicate' };

/** An endpoint as one port of its service sees it. */
export interface JudgedEndpoint extends KnownEndpoint {
  readonly port: PortNumber;
  /** `address:port`, its identity there. */
  readonly target: string;
  /** Undefined when it is used. */
  readonly withheld: Withheld | undefined;
  /** 0, or 1 for one that is used only while none of 0 can be. */
  readonly tier: number;
}

/** Inline ones, then those of publishers by name: of two that are the same the first counts. */
export function endpointsOf(state: ClusterState, service: ServiceResource): readonly KnownEndpoint[] {
  const name = nameOf(service);
  const records = state.health.of(name);
  const portToCheck = checkedPort(service.spec.ports, service.spec.health);
  const known = (endpoint: EndpointSpec, source: string, ready: boolean): KnownEndpoint => {
    const checked = portToCheck && formatAddressPort(endpoint.address, portToCheck(endpoint));
    return { endpoint, source, ready, checked, health: checked === undefined ? undefined : records.get(checked) };
  };
  return [
    ...service.spec.endpoints.map((endpoint) => known(endpoint, 'inline', true)),
    ...state
      .endpointsOf(name)
      .flatMap(({ metadata, spec }) =>
        spec.endpoints.map((endpoint) => known(endpoint, `endpoints/${metadata.name}`, endpoint.ready)),
      ),
  ];
}

/** How many endpoints a service has, whatever becomes of them. */
export function countEndpoints(state: ClusterState, service: ServiceResource): number {
  const published = state.endpointsOf(nameOf(service)).map(({ spec }) => spec.endpoints.length);
  return published.reduce((sum, count) => sum + count, service.spec.endpoints.length);
}

/** What becomes of each endpoint at one port, on the node `nodeId`: the one place where that is decided. */
export function judgeEndpoints(
  endpoints: readonly KnownEndpoint[],
  { spec }: ServiceResource,
  port: ServicePort,
  nodeId: NodeName,
): readonly JudgedEndpoint[] {
  const { locality } = spec.balance;
  const used = new Set<string>();
  return endpoints.map((known) => {
    const number = targetPort(known.endpoint, port, spec.ports.length === 1);
    const target = formatAddressPort(known.endpoint.address, number);
    const local = isLocal(known.endpoint, nodeId);
    const withheld =
      withheldByState(known) ??
      (locality === 'local-only' && !local ? OTHER_NODE : undefined) ??
      (used.has(target) ? DUPLICATE : undefined);
    if (withheld === undefined) used.add(target);
    const tier = locality === 'prefer-local' && !local ? 1 : 0;
    return { ...known, port: number, target, withheld, tier };
  });
}

const NOT_READY: Withheld = { why: 'not-ready' };
const OTHER_NODE: Withheld = { why: 'other-node' };
const DUPLICATE: Withheld = { why: 'duplicate' };

function withheldByState({ ready, health }: KnownEndpoint): Withheld | undefined {
  if (!ready) return NOT_READY;
  return health === undefined || health.healthy ? undefined : { why: 'unhealthy', reason: health.reason, since: health.since };
}

/** An endpoint that names no node is this one's if its address is loopback, as nobody else can reach it there. */
export function isLocal({ node, address }: EndpointSpec, nodeId: NodeName): boolean {
  return node === undefined ? isLoopback(address) : node === nodeId;
}

/** Where an endpoint serves a port of its service. */
export function targetPort({ port: own, ports }: EndpointSpec, { name, targetPort }: ServicePort, onlyPort: boolean): PortNumber {
  // A port may be called `constructor`.
  const named = ports !== undefined && Object.hasOwn(ports, name) ? ports[name] : undefined;
  return named ?? (onlyPort ? own : undefined) ?? targetPort;
}

/** How the port to check follows from an endpoint: the check's own, else where the first TCP port is served. */
export function checkedPort(
  ports: readonly ServicePort[],
  health: HealthSpec | undefined,
): ((endpoint: EndpointSpec) => PortNumber) | undefined {
  const check = health?.tcp ?? health?.http ?? health?.grpc;
  if (check === undefined) return undefined;
  const own = check.port;
  if (own !== undefined) return () => own;
  const tcp = ports.find(({ protocol }) => protocol === 'tcp');
  return tcp && ((endpoint) => targetPort(endpoint, tcp, ports.length === 1));
}
