import type { NodeName } from '../identity/model.js';
import { durationMs } from '../kernel/duration.js';
import { nameOf, type QualifiedName, type ServicePort, type ServiceResource, type ServiceSpec } from '../resource/model.js';
import type { ClusterState } from '../resource/state.js';
import { decidePath } from './data-path.js';
import { endpointsOf, isLocal, type JudgedEndpoint, judgeEndpoints } from './endpoints.js';
import type { DataPath, L4Delta, L4Endpoint, L4Listener, L4Table, ListenerId, ProxyHeader } from './model.js';

/** A flow of UDP has no end that could be seen: an answer that takes longer is rare. */
const UDP_IDLE_MS = 60_000;

export function listenerId(service: QualifiedName, port: string): ListenerId {
  return `${service}/${port}` as ListenerId;
}

/** The service that a listener belongs to, and the name of its port. */
export function splitListenerId(id: ListenerId): { readonly service: QualifiedName; readonly port: string } {
  const slash = id.lastIndexOf('/');
  return { service: id.slice(0, slash) as QualifiedName, port: id.slice(slash + 1) };
}

/**
 * The whole table of the node `nodeId`; `fresh` tells whether the state may be taken for the present one. What follows changes uses
 * `L4Compiler`, whose table is equal to this one.
 */
export function compileServices(state: ClusterState, nodeId: NodeName, fresh = true, kernel = false): L4Table {
  const listeners = [...state.all()].flatMap(({ resource }) =>
    resource.kind === 'Service' ? compileService(state, resource, nodeId, fresh, kernel) : [],
  );
  return new Map(listeners.map((listener) => [listener.id, listener]));
}

/** `elsewhere`: listeners of the named services that the other path carries now. */
export interface CompiledDelta extends L4Delta {
  readonly elsewhere?: readonly ListenerId[];
}

/** Keeps the table of a changing state at the cost of what changed. */
export class L4Compiler {
  readonly #nodeId: NodeName;
  readonly #kernel: boolean;
  readonly #only: DataPath | undefined;
  readonly #table = new Map<ListenerId, L4Listener>();
  readonly #byService = new Map<QualifiedName, readonly ListenerId[]>();

  /** `kernel`: this node's kernel carries services, not the proxy alone. `only`: listeners of the other path are as if they were not there. */
  constructor(nodeId: NodeName, kernel = false, only?: DataPath) {
    this.#nodeId = nodeId;
    this.#kernel = kernel;
    this.#only = only;
  }

  /** What the service was compiled to. */
  of(service: QualifiedName): readonly L4Listener[] {
    return (this.#byService.get(service) ?? []).flatMap((id) => this.#table.get(id) ?? []);
  }

  get table(): L4Table {
    return this.#table;
  }

  /** Compiles the named services again; listeners that come out as they were are not in the delta. */
  update(state: ClusterState, services: Iterable<QualifiedName>, fresh = true): CompiledDelta {
    const elsewhere: ListenerId[] = [];
    const upsert: L4Listener[] = [];
    const remove: ListenerId[] = [];
    for (const name of services) {
      const resource = state.service(name)?.resource;
      const compiled = resource === undefined ? [] : compileService(state, resource, this.#nodeId, fresh, this.#kernel);
      const listeners = this.#only === undefined ? compiled : compiled.filter(({ path }) => path === this.#only);
      if (listeners.length < compiled.length)
        elsewhere.push(...compiled.flatMap(({ id, path }) => (path === this.#only ? [] : [id])));
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
    return { upsert, remove, ...(elsewhere.length === 0 ? {} : { elsewhere }) };
  }
}

function compileService(
  state: ClusterState,
  service: ServiceResource,
  nodeId: NodeName,
  fresh: boolean,
  kernel: boolean,
): readonly L4Listener[] {
  const name = nameOf(service);
  const address = state.vips.ofService(name);
  if (address === undefined || state.vips.get(address)?.releasedAt !== undefined) return [];
  const known = endpointsOf(state, service);
  return service.spec.ports.map((port) => {
    const endpoints = judgeEndpoints(known, service, port, nodeId).flatMap((judged) => usedEndpoint(judged, nodeId));
    return {
      id: listenerId(name, port.name),
      address,
      port: port.port,
      protocol: port.protocol,
      algorithm: service.spec.balance.algorithm,
      drainMs: ms(service.spec.drain.timeout),
      affinityMs: ms(service.spec.affinity?.clientIP.timeout),
      maxConnections: service.spec.limits?.connections ?? 0,
      ...byProtocol(service.spec, port),
      refuse: refusesNow(service, fresh),
      path: kernel ? decidePath(service.spec, address, endpoints).path : 'proxy',
      endpoints,
    };
  });
}

/** As the data plane has it; none when it gets nothing new. */
export function usedEndpoint({ endpoint, port, tier, withheld }: JudgedEndpoint, nodeId: NodeName): readonly L4Endpoint[] {
  if (withheld !== undefined) return [];
  return [{ address: endpoint.address, port, weight: endpoint.weight, tier, local: isLocal(endpoint, nodeId) }];
}

/** Whether a service takes no new connection because the state may be an old one. */
export function refusesNow({ spec }: ServiceResource, fresh: boolean): boolean {
  return !fresh && spec.onStale === 'refuse';
}

function byProtocol({ idleTimeout, proxyProtocol }: ServiceSpec, { protocol }: ServicePort) {
  if (protocol === 'udp') return { idleMs: ms(idleTimeout, UDP_IDLE_MS), acceptProxy: false, sendProxy: 0 as ProxyHeader };
  return { idleMs: ms(idleTimeout), acceptProxy: proxyProtocol?.accept === true, sendProxy: headerOf(proxyProtocol?.send) };
}

function headerOf(send: 'v1' | 'v2' | undefined): ProxyHeader {
  if (send === undefined) return 0;
  return send === 'v1' ? 1 : 2;
}

function ms(duration: string | undefined, otherwise = 0): number {
  return duration === undefined ? otherwise : (durationMs(duration) ?? otherwise);
}

function sameListener({ endpoints: a, ...scalars }: L4Listener, { endpoints: b, ...others }: L4Listener): boolean {
  return (
    Object.entries(scalars).every(([key, value]) => others[key as keyof typeof others] === value) &&
    a.length === b.length &&
    a.every((endpoint, index) => sameEndpoint(endpoint, b[index]))
  );
}

function sameEndpoint(a: L4Endpoint, b: L4Endpoint | undefined): boolean {
  return a.address === b?.address && a.port === b.port && a.weight === b.weight && a.tier === b.tier && a.local === b.local;
}
