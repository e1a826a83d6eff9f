import type { ServiceDefinition } from '@grpc/grpc-js';
import type { AdminCaller } from '../../domain/admin/model.js';
import { checkRoles } from '../../domain/admin/roles.js';
import type { Explainer } from '../../ports/driving/explainer.js';
import type { Operations } from '../../ports/driving/operations.js';
import type { Resources } from '../../ports/driving/resources.js';
import type { Logger } from '../../ports/logger.js';
import { AdminServiceService } from '../generated/holdfast/admin/v1/admin.js';
import { CertificateServiceService } from '../generated/holdfast/admin/v1/certificates.js';
import { FleetServiceService } from '../generated/holdfast/admin/v1/fleet.js';
import { NodeServiceService } from '../generated/holdfast/admin/v1/node.js';
import type { Service } from '../link/grpc-tls-server.js';
import { Audited } from './audited.js';
import { certificateHandlers } from './certificate-handlers.js';
import { type FleetParts, fleetHandlers } from './fleet-handlers.js';
import { type AdminCall, GrpcCalls } from './grpc-calls.js';
import { type NodeParts, nodeHandlers } from './node-handlers.js';
import { resourceHandlers } from './resource-handlers.js';

/** A file of 16 MiB and what JSON and its neighbours add. */
export const MAX_REQUEST_BYTES = 64 * 1024 * 1024;

export interface AdminParts {
  readonly resources: Resources;
  readonly operations: Operations;
  readonly explainer: Explainer;
  readonly logger: Logger;
  /** Of a control plane; undefined where there is no fleet. */
  readonly fleet?: FleetParts | undefined;
  /** Of a node of a fleet; undefined where there is no control plane elsewhere. */
  readonly node?: NodeParts | undefined;
}

/**
 * The admin API, the same for whoever is let in; `callerOf` says who makes a call.
 * @throws AgentError `admin.not_served` for a method without a role
 */
export function adminServices(parts: AdminParts, callerOf: (call: AdminCall) => AdminCaller): readonly Service[] {
  const { logger, fleet, node } = parts;
  const calls = new GrpcCalls(logger, callerOf);
  const services: Service[] = [];
  const add = (definition: ServiceDefinition, implementation: Service['implementation']) =>
    services.push({ definition, implementation });
  const audited = fleet === undefined ? undefined : new Audited(fleet.audit, fleet.logger);
  add(AdminServiceService, { ...resourceHandlers(calls, parts, audited) });
  if (fleet !== undefined && audited !== undefined) {
    add(FleetServiceService, { ...fleetHandlers(calls, fleet, audited) });
    add(CertificateServiceService, { ...certificateHandlers(calls, fleet, audited) });
  }
  if (node !== undefined) add(NodeServiceService, { ...nodeHandlers(calls, node) });
  checkRoles(services.flatMap(({ definition }) => Object.values(definition).map(({ path }) => path)));
  return services;
}
