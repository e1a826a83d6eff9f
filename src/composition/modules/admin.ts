import { ContainerModule } from 'inversify';
import { GrpcAdminServer } from '../../adapters/admin/grpc-admin-server.js';
import { Ports, Root, Servers, UseCases } from '../tokens.js';

export const adminModule = new ContainerModule(({ bind }) => {
  bind(Servers.admin)
    .toResolvedValue(
      ({ paths, addon }, resources, operations, explainer, logger) =>
        new GrpcAdminServer({
          folder: paths.adminDir,
          socket: paths.adminSocket,
          resources,
          operations,
          explainer,
          logger: logger.child({ subsystem: 'admin' }),
          peerUid: (descriptor) => addon.peerUid(descriptor),
        }),
      [Root.facts, UseCases.resources, UseCases.operations, UseCases.explainer, Ports.logger],
    )
    .inSingletonScope();
});
