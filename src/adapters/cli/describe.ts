import { printable } from '../../domain/kernel/printable.js';
import type { EndpointStatus, ResourceObject, ServiceStatus } from '../../domain/resource/render.js';
import type { ServiceTraffic } from '../generated/holdfast/admin/v1/admin.js';
import { table, yaml } from './output.js';

/** Everything about one resource, for people: manifest, address, what stands in the way of traffic, ports, endpoints. */
export function describeObject(object: ResourceObject, services: readonly ServiceTraffic[]): string {
  const { status, ...manifest } = object;
  if (object.kind !== 'Service') return yaml(manifest);
  if (status === undefined) return `${yaml(manifest)}\nNO TRAFFIC: the service has no address yet\n`;
  const { namespace, name } = object.metadata;
  const mine = services.filter((service) => service.namespace === namespace && service.service === name);
  return [
    `${yaml(manifest)}address: ${status.vip}\n`,
    ...obstacles(name, status).map((obstacle) => `\nNO TRAFFIC: ${printable(obstacle)}\n`),
    '\n',
    portTable(status),
    ...(status.endpoints.length === 0 ? [] : ['\n', endpointTable(status, mine)]),
  ].join('');
}

/** The listener stands, so that the kernel accepts before the proxy knows that there is nobody to dial. */
const WHAT_CLIENTS_SEE = 'connections are accepted and reset at once';

/** Why no connection can come to an endpoint, by port where only some are concerned, and what to do. */
function obstacles(service: string, { ports, endpoints }: ServiceStatus): readonly string[] {
  const failed = ports.flatMap(({ name, port, state, reason = 'unknown', remedy }) => {
    if (state === 'failed')
      return [`port ${name} (${port}) does not listen: ${reason}${remedy === undefined ? '' : `; ${remedy}`}`];
    return state === 'pending' ? [`port ${name} (${port}) does not listen yet`] : [];
  });
  if (endpoints.length === 0) {
    const remedy = `add spec.endpoints, or an Endpoints object with spec.service: ${service}`;
    return [...failed, `the service has no endpoints, so that ${WHAT_CLIENTS_SEE}; ${remedy}`];
  }
  if (endpoints.some(isUsable)) return failed;
  const which = endpoints.length === 1 ? 'its only endpoint is not' : `none of its ${endpoints.length} endpoints is`;
  const remedy = endpoints.some(({ health }) => health?.state === 'unhealthy')
    ? `mend what the checks have found; holdfast explain service ${service}`
    : 'see the Endpoints objects that publish them';
  return [...failed, `${which} ready, so that ${WHAT_CLIENTS_SEE}; ${remedy}`];
}

function portTable({ ports }: ServiceStatus): string {
  const rows = ports.map((port) => [port.name, String(port.port), port.state, port.listen ?? '-']);
  return table(['PORT', 'NUMBER', 'STATE', 'LISTENS ON'], rows);
}

/** A row per endpoint and port: each is dialled and counted by itself. */
function endpointTable({ endpoints }: ServiceStatus, services: readonly ServiceTraffic[]): string {
  const rows = endpoints.flatMap((endpoint) =>
    endpoint.targets.map(({ port, address }) => [
      address,
      port,
      endpoint.source,
      String(endpoint.weight),
      readiness(endpoint),
      ...traffic(port, address, services),
    ]),
  );
  return table(['ENDPOINT', 'PORT', 'FROM', 'WEIGHT', 'READY', 'ACTIVE', 'TOTAL'], rows);
}

export function isUsable({ ready, health }: EndpointStatus): boolean {
  return ready && health?.state !== 'unhealthy';
}

/** `yes`, `no`, or `no: connection refused` for what a check has found. */
function readiness(endpoint: EndpointStatus): string {
  if (isUsable(endpoint)) return 'yes';
  return endpoint.health?.state === 'unhealthy' ? `no: ${endpoint.health.reason ?? 'unhealthy'}` : 'no';
}

/** An endpoint that was withdrawn and came back is there twice while the former one drains. */
function traffic(port: string, address: string, services: readonly ServiceTraffic[]): readonly [string, string] {
  const endpoints = services
    .filter((service) => service.port === port)
    .flatMap((service) => service.endpoints)
    .filter((endpoint) => endpoint.address === address);
  const sum = (pick: (endpoint: (typeof endpoints)[number]) => bigint) =>
    String(endpoints.reduce((total, one) => total + pick(one), 0n));
  return [sum(({ active }) => active), sum(({ total }) => total)];
}
