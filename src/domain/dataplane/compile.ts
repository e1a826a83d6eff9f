import { durationMs } from '../kernel/duration.js';
import { formatAddressPort } from '../kernel/network.js';
import type { EndpointSpec, QualifiedName, ServicePort, ServiceResource } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import type { L4Delta, L4Endpoint, L4Listener, L4Table, ListenerId } from './model.js';

export function listenerId(service: QualifiedName, port: string): ListenerId {
  return `${service}/${port}` as ListenerId;
}

/** The service that a listener belongs to, and the name of its port. */
export function splitListenerId(id: ListenerId): { readonly service: QualifiedName; readonly port: string } {
  const slash = id.lastIndexOf('/');
  return { service: id.slice(0, slash) as QualifiedName, port: id.slice(slash + 1) };
}

/** The whole table. What follows changes uses `L4Compiler`, whose table is equal to this one. */
export function compileServices(state: ClusterState): L4Table {
  const listeners = [...state.all()].flatMap(({ resource }) =>
    resource.kind === 'Service' ? compileService(state, resource) : [],
  );
  return new Map(listeners.map((listener) => [listener.id, listener]));
}

/** Keeps the table of a changing state at the cost of what changed. */
export class L4Compiler {
  readonly #table = new Map<ListenerId, L4Listener>();
  readonly #byService = new Map<QualifiedName, readonly ListenerId[]>();

  get table(): L4Table {
    return this.#table;
  }

  /** Compiles the named services again; listeners that come out as they were are not in the delta. */
  update(state: ClusterState, services: Iterable<QualifiedName>): L4Delta {
    const upsert: L4Listener[] = [];
    const remove: ListenerId[] = [];
    for (const name of services) {
      const resource = state.service(name)?.resource;
      const listeners = resource === undefined ? [] : compileService(state, resource);
      const ids = listeners.map(({ id }) => id);
      for (const id of this.#byService.get(name) ?? []) {
        if (ids.includes(id)) continue;
        this.#table.delete(id);
        remove.push(id);
      }
      for (const listener of listeners) {
        const former = this.#table.get(listener.id);
        if (former !== undefined && sameListener(former, listener)) continue;
        this.#table.set(listener.id, listener);
        upsert.push(listener);
      }
      if (ids.length === 0) this.#byService.delete(name);
      else this.#byService.set(name, ids);
    }
    return { upsert, remove };
  }
}

function compileService(state: ClusterState, { metadata, spec }: ServiceResource): readonly L4Listener[] {
  const name = `${metadata.namespace}/${metadata.name}` as QualifiedName;
  const address = state.vips.ofService(name);
  if (address === undefined || state.vips.get(address)?.releasedAt !== undefined) return [];
  const endpoints = readyEndpoints(state, name, spec.endpoints);
  return spec.ports.map((port) => ({
    id: listenerId(name, port.name),
    address,
    port: port.port,
    protocol: port.protocol,
    algorithm: spec.balance.algorithm,
    affinityMs: 0,
    idleMs: 0,
    maxConnections: 0,
    acceptProxy: false,
    sendProxy: 0,
    drainMs: durationMs(spec.drain.timeout) ?? 0,
    endpoints: resolve(endpoints, port, spec.ports.length === 1),
  }));
}

function readyEndpoints(state: ClusterState, name: QualifiedName, inline: readonly EndpointSpec[]): readonly EndpointSpec[] {
  const published = state.endpointsOf(name).flatMap(({ spec }) => spec.endpoints.filter(({ ready }) => ready));
  return [...inline, ...published];
}

/** The first of two endpoints with the same address and port counts: inline ones, then publishers by name. */
function resolve(endpoints: readonly EndpointSpec[], port: ServicePort, onlyPort: boolean): readonly L4Endpoint[] {
  const resolved = new Map<string, L4Endpoint>();
  for (const { address, port: own, ports, weight } of endpoints) {
    // A port may be called `constructor`.
    const named = ports !== undefined && Object.hasOwn(ports, port.name) ? ports[port.name] : undefined;
    const target = named ?? (onlyPort ? own : undefined) ?? port.targetPort;
    const identity = formatAddressPort(address, target);
    if (!resolved.has(identity)) resolved.set(identity, { address, port: target, weight, tier: 0 });
  }
  return [...resolved.values()];
}

function sameListener({ endpoints: a, ...scalars }: L4Listener, { endpoints: b, ...others }: L4Listener): boolean {
  return (
    Object.entries(scalars).every(([key, value]) => others[key as keyof typeof others] === value) &&
    a.length === b.length &&
    a.every((endpoint, index) => sameEndpoint(endpoint, b[index]))
  );
}

function sameEndpoint(a: L4Endpoint, b: L4Endpoint | undefined): boolean {
  return a.address === b?.address && a.port === b.port && a.weight === b.weight && a.tier === b.tier;
}
