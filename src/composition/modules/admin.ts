import { ContainerModule } from 'inversify';
import { GrpcAdminServer } from '../../adapters/admin/grpc-admin-server.js';
import type { NodeParts } from '../../adapters/admin/node-handlers.js';
import { linkStatus } from '../../app/link/link-status.js';
import { NodePorts, NodeSubsystems, Ports, Root, Servers, UseCases } from '../tokens.js';

export const adminModule = new ContainerModule(({ bind }) => {
  bind(Servers.admin)
    .toResolvedValue(
      ({ paths, addon }, resources, operations, explainer, logger, container) =>
        new GrpcAdminServer({
          folder: paths.adminDir,
          socket: paths.adminSocket,
          resources,
          operations,
          explainer,
          logger: logger.child({ subsystem: 'admin' }),
          peerUid: (descriptor) => addon.peerUid(descriptor),
          node: container.isBound(UseCases.node) ? container.get(UseCases.node) : undefined,
        }),
      [Root.facts, UseCases.resources, UseCases.operations, UseCases.explainer, Ports.logger, Root.container],
    )
    .inSingletonScope();
});

/** What people ask a node of a fleet beside its traffic. */
export const nodeAdminModule = new ContainerModule(({ bind }) => {
  bind(UseCases.linkStatus)
    .toResolvedValue((link, clock) => () => linkStatus(link.state(), clock), [NodeSubsystems.link, Ports.clock])
    .inSingletonScope();
  bind(UseCases.node)
    .toResolvedValue(
      (resync, memory, overlay, etcd, apiBalancer, audit, logger): NodeParts => ({
        ...{ resync, memory, overlay, etcd, apiBalancer, audit, logger },
      }),
      [
        ...([NodeSubsystems.logConsumer, NodeSubsystems.engine, NodeSubsystems.overlay, NodePorts.etcd] as const),
        ...([NodeSubsystems.balancer, Ports.audit, Ports.logger] as const),
      ],
    )
    .inSingletonScope();
});
