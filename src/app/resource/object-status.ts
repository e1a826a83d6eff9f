import { listenerId } from '../../domain/dataplane/compile.js';
import { endpointsOf, type KnownEndpoint, targetPort } from '../../domain/dataplane/endpoints.js';
import { formatAddressPort, type IpAddress } from '../../domain/kernel/network.js';
import { nameOf, type QualifiedName, type ServicePort, type ServiceResource } from '../../domain/resource/model.js';
import {
  type EndpointHealth,
  type EndpointStatus,
  type PortStatus,
  type ResourceObject,
  renderObject,
  type ServiceStatus,
} from '../../domain/resource/render.js';
import type { ClusterState, Held } from '../../domain/resource/state.js';
import type { ListenerStatus } from '../../ports/dataplane/listener-status.js';

/** A resource with what has become of it on this node. */
export function objectOf({ resource, revision }: Held, state: ClusterState, listeners: ListenerStatus): ResourceObject {
  return renderObject(resource, revision, resource.kind === 'Service' ? serviceStatus(resource, state, listeners) : undefined);
}

export function portStatus(
  service: QualifiedName,
  { name, port }: { readonly name: string; readonly port: number },
  vip: IpAddress,
  listeners: ListenerStatus,
): PortStatus {
  const state = listeners.stateOf(listenerId(service, name));
  switch (state.state) {
    case 'listening':
      return { name, port, state: 'listening', listen: formatAddressPort(vip, state.port) };
    case 'failed':
      return { name, port, state: 'failed', reason: state.reason, remedy: state.remedy };
    case 'pending':
    case 'elsewhere':
      return { name, port, state: state.state };
  }
}

function serviceStatus(service: ServiceResource, state: ClusterState, listeners: ListenerStatus): ServiceStatus | undefined {
  const name = nameOf(service);
  const vip = state.vips.ofService(name);
  if (vip === undefined) return undefined;
  return {
    vip,
    ports: service.spec.ports.map((port) => portStatus(name, port, vip, listeners)),
    endpoints: endpointsOf(state, service).map((known) => endpointStatus(known, service.spec.ports)),
  };
}

function endpointStatus(known: KnownEndpoint, ports: readonly ServicePort[]): EndpointStatus {
  const { endpoint, source, ready } = known;
  const targets = ports.map((port) => ({
    port: port.name,
    address: formatAddressPort(endpoint.address, targetPort(endpoint, port, ports.length === 1)),
  }));
  const { name, weight, node } = endpoint;
  return { name, targets, source, weight, ready, ...(node === undefined ? {} : { node }), ...healthStatus(known) };
}

function healthStatus({ checked, health }: KnownEndpoint): { readonly health?: EndpointHealth } {
  if (checked === undefined) return {};
  if (health === undefined) return { health: { state: 'unknown' } };
  const { healthy, reason, since } = health;
  const state = healthy ? 'healthy' : 'unhealthy';
  return { health: { state, ...(reason === '' ? {} : { reason }), since: new Date(since).toISOString() } };
}
