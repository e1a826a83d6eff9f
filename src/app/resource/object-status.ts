import { listenerId } from '../../domain/dataplane/compile.js';
import { formatAddressPort, type IpAddress, type PortNumber } from '../../domain/kernel/network.js';
import {
  type EndpointSpec,
  nameOf,
  type QualifiedName,
  type ServicePort,
  type ServiceResource,
} from '../../domain/resource/model.js';
import {
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
      return { name, port, state: 'pending' };
  }
}

function serviceStatus(service: ServiceResource, state: ClusterState, listeners: ListenerStatus): ServiceStatus | undefined {
  const name = nameOf(service);
  const vip = state.vips.ofService(name);
  if (vip === undefined) return undefined;
  const published = state
    .endpointsOf(name)
    .flatMap(({ metadata, spec }) =>
      spec.endpoints.map((endpoint) =>
        endpointStatus(endpoint, service.spec.ports, `endpoints/${metadata.name}`, endpoint.ready),
      ),
    );
  return {
    vip,
    ports: service.spec.ports.map((port) => portStatus(name, port, vip, listeners)),
    endpoints: [
      ...service.spec.endpoints.map((endpoint) => endpointStatus(endpoint, service.spec.ports, 'inline', true)),
      ...published,
    ],
  };
}

function endpointStatus(endpoint: EndpointSpec, ports: readonly ServicePort[], source: string, ready: boolean): EndpointStatus {
  const targets = ports.map((port) => ({
    port: port.name,
    address: formatAddressPort(endpoint.address, targetOf(endpoint, port, ports.length === 1)),
  }));
  return { name: endpoint.name, targets, source, weight: endpoint.weight, ready };
}

function targetOf({ port: own, ports }: EndpointSpec, { name, targetPort }: ServicePort, onlyPort: boolean): PortNumber {
  // A port may be called `constructor`.
  const named = ports !== undefined && Object.hasOwn(ports, name) ? ports[name] : undefined;
  return named ?? (onlyPort ? own : undefined) ?? targetPort;
}
