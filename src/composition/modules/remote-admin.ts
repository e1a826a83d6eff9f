import { randomBytes } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { GrpcRemoteAdminServer } from '../../adapters/admin/grpc-remote-admin-server.js';
import { adminPeerJudge } from '../../adapters/certificate/admin-peer-judge.js';
import { AdminCertificateService } from '../../app/certificate/admin-certificate-service.js';
import { ServerPairSubsystem } from '../../app/certificate/server-pair-subsystem.js';
import { FleetPorts, FleetServers, FleetSubsystems, FleetUseCases, Ports, Root, UseCases } from '../tokens.js';

/** Operating a control plane from elsewhere; its port is there only where the configuration asks for it. */
export const remoteAdminModule = new ContainerModule(({ bind }) => {
  bind(FleetUseCases.certificates)
    .toResolvedValue(
      ({ config }, { store, authorities }, revocations, clock) =>
        new AdminCertificateService({
          store,
          authority: authorities.admin,
          revocations,
          clock,
          randomBytes,
          account: config.serverAccount,
        }),
      [Root.facts, Root.controlPlane, FleetPorts.enrolmentView, Ports.clock],
    )
    .inSingletonScope();
  bind(FleetSubsystems.adminPair)
    .toResolvedValue(
      ({ own, serverId, hosts }, clock, logger, container) =>
        new ServerPairSubsystem({
          own,
          port: 'admin',
          server: serverId,
          hosts,
          clock,
          random: Math.random,
          logger,
          onRenewed: () => container.get(FleetServers.admin).reload(),
        }),
      [Root.controlPlane, Ports.clock, Ports.logger, Root.container],
    )
    .inSingletonScope();
  bind(FleetServers.admin)
    .toResolvedValue(
      (
        { config: { serverAdminListen: listen } },
        { authorities },
        pairs,
        view,
        resources,
        operations,
        explainer,
        fleet,
        clock,
        logger,
      ) =>
        new GrpcRemoteAdminServer({
          // Made only where it is asked for.
          listen: listen === 'off' ? { host: '127.0.0.1', port: 0 } : { host: listen.address, port: listen.port },
          pair: () => ({ ...pairs.pair(), clientRoots: authorities.admin.roots }),
          judge: adminPeerJudge({ roots: () => authorities.admin.roots, revocations: view, now: () => clock.now() }),
          revocations: view,
          resources,
          operations,
          explainer,
          fleet,
          clock,
          logger: logger.child({ subsystem: 'remote admin' }),
        }),
      [
        Root.facts,
        Root.controlPlane,
        FleetSubsystems.adminPair,
        FleetPorts.enrolmentView,
        UseCases.resources,
        UseCases.operations,
        UseCases.explainer,
        UseCases.fleet,
        Ports.clock,
        Ports.logger,
      ],
    )
    .inSingletonScope();
});
