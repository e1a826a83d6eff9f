import { ContainerModule } from 'inversify';
import type { FleetParts } from '../../adapters/admin/fleet-handlers.js';
import { GrpcAdminServer } from '../../adapters/admin/grpc-admin-server.js';
import { ExplainService } from '../../app/dataplane/explain-service.js';
import { noListeners, noTraffic } from '../../app/node/no-traffic.js';
import { NodeOperations } from '../../app/node/node-operations.js';
import { ControlPlaneSubsystem } from '../../app/resource/control-plane-subsystem.js';
import { ResourceService } from '../../app/resource/resource-service.js';
import { vipRange } from '../../domain/dataplane/vip.js';
import { formatIpv4Range } from '../../domain/kernel/network.js';
import { FleetPorts, FleetUseCases, Ports, Root, Servers, Subsystems, UseCases } from '../tokens.js';

/** What people ask a control plane that carries no traffic itself. */
export const serverModule = new ContainerModule(({ bind }) => {
  bind(UseCases.resources)
    .toResolvedValue(
      ({ config }, log, view, clock) =>
        new ResourceService({
          log,
          newest: (options) => log.newest(options),
          view,
          listeners: noListeners,
          clock,
          vipRange: vipRange(formatIpv4Range(config.vipRange)),
        }),
      [Root.facts, Ports.ownedLog, Subsystems.logConsumer, Ports.clock],
    )
    .inSingletonScope();
  bind(Subsystems.controlPlane)
    .toResolvedValue(
      ({ config }, log, view) => new ControlPlaneSubsystem(log, view, vipRange(formatIpv4Range(config.vipRange))),
      [Root.facts, Ports.log, Subsystems.logConsumer],
    )
    .inSingletonScope();
  bind(UseCases.explainer)
    .toResolvedValue(
      ({ identity }, log, view) =>
        new ExplainService({ nodeId: identity.nodeId, log, view, listeners: noListeners, dataPlane: noTraffic, kernel: false }),
      [Root.facts, Ports.log, Subsystems.logConsumer],
    )
    .inSingletonScope();
  bind(UseCases.operations)
    .toResolvedValue(
      ({ version, paths, startedAt }, { store }, agent, view, clock, log, audit, fleet, vips, metrics, metricsServer) =>
        new NodeOperations({
          agent,
          view,
          listeners: noListeners,
          dataPlane: noTraffic,
          clock,
          sources: [log, store, audit, vips, metrics],
          version,
          dataDir: paths.dataDir,
          startedAt,
          metricsListen: () => metricsServer.address,
          fleet,
        }),
      [
        Root.facts,
        Root.controlPlane,
        Root.agent,
        Subsystems.logConsumer,
        Ports.clock,
        Ports.ownedLog,
        Ports.audit,
        FleetPorts.status,
        FleetPorts.vips,
        Subsystems.metrics,
        Servers.metrics,
      ],
    )
    .inSingletonScope();
  bind(UseCases.fleet)
    .toResolvedValue(
      (
        { config },
        { backups },
        instructions,
        nodes,
        tokens,
        certificates,
        roots,
        outputs,
        sessions,
        vips,
        audit,
        logger,
      ): FleetParts => ({
        instructions,
        nodes,
        tokens,
        certificates,
        roots,
        outputs,
        sessions,
        vips,
        backups,
        audit,
        logger,
        account: config.serverAccount,
      }),
      [
        Root.facts,
        Root.controlPlane,
        FleetUseCases.instructions,
        FleetUseCases.nodes,
        FleetUseCases.tokens,
        FleetUseCases.certificates,
        FleetUseCases.roots,
        FleetPorts.outputs,
        FleetPorts.sessionRelay,
        FleetPorts.vips,
        Ports.audit,
        Ports.logger,
      ],
    )
    .inSingletonScope();
  bind(Servers.admin)
    .toResolvedValue(
      ({ paths, addon }, resources, operations, explainer, logger, fleet) =>
        new GrpcAdminServer({
          folder: paths.adminDir,
          socket: paths.adminSocket,
          resources,
          operations,
          explainer,
          logger: logger.child({ subsystem: 'admin' }),
          peerUid: (descriptor) => addon.peerUid(descriptor),
          fleet,
        }),
      [Root.facts, UseCases.resources, UseCases.operations, UseCases.explainer, Ports.logger, UseCases.fleet],
    )
    .inSingletonScope();
});
