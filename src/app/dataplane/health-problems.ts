import { endpointsOf } from '../../domain/dataplane/endpoints.js';
import { nameOf, type ServiceResource } from '../../domain/resource/model.js';
import type { ClusterState } from '../../domain/resource/state.js';
import type { StatusProblem } from '../../ports/driving/operations.js';

/** A network that fails makes thousands of endpoints unhealthy for one reason. */
const MOST_SERVICES = 50;
const MOST_ENDPOINTS = 3;

/** Services with unhealthy endpoints, whichever node has found them so. */
export function healthProblems(state: ClusterState): readonly StatusProblem[] {
  const all = [...state.health.services()].flatMap((name) => {
    const service = state.service(name)?.resource;
    return service === undefined ? [] : problemOf(state, service);
  });
  const more = all.length - MOST_SERVICES;
  if (more <= 0) return all;
  const reason = `${more} more services have unhealthy endpoints`;
  const remedy = 'see `holdfast get services -A` for each';
  return [...all.slice(0, MOST_SERVICES), { subject: 'health', reason, since: undefined, remedy }];
}

function problemOf(state: ClusterState, service: ServiceResource): readonly StatusProblem[] {
  const endpoints = endpointsOf(state, service);
  const unhealthy = endpoints.flatMap(({ checked, health }) => (health?.healthy === false ? [{ checked, health }] : []));
  if (unhealthy.length === 0) return [];
  const named = unhealthy.slice(0, MOST_ENDPOINTS).map(({ checked, health }) => `${checked} (${health.reason})`);
  const rest = unhealthy.length - named.length;
  const name = nameOf(service);
  const [namespace, short] = name.split('/');
  const verb = unhealthy.length === 1 ? 'is' : 'are';
  return [
    {
      subject: `service ${name}`,
      reason: `${unhealthy.length} of ${endpoints.length} endpoints ${verb} unhealthy: ${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`,
      since: Math.min(...unhealthy.map(({ health }) => health.since)),
      remedy: `mend what the checks have found; \`holdfast explain service ${short} -n ${namespace}\` shows where connections go`,
    },
  ];
}
