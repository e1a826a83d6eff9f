import { ContainerModule } from 'inversify';
import { NodeOperations } from '../../app/node/node-operations.js';
import { Ports, Root, Servers, Subsystems, UseCases } from '../tokens.js';

/** What people ask a daemon that carries traffic. */
export const agentModule = new ContainerModule(({ bind }) => {
  bind(UseCases.operations)
    .toResolvedValue(
      ({ version, paths, startedAt }, agent, view, listeners, dataPlane, clock, server, metrics, problems, health, container) =>
        new NodeOperations({
          agent,
          view,
          listeners,
          dataPlane,
          clock,
          sources: [problems, listeners, health, metrics],
          version,
          dataDir: paths.dataDir,
          startedAt,
          metricsListen: () => server.address,
          ...(container.isBound(UseCases.linkStatus) ? { link: container.get(UseCases.linkStatus) } : {}),
          ...(container.isBound(UseCases.overlayStatus) ? { overlay: container.get(UseCases.overlayStatus) } : {}),
        }),
      [
        Root.facts,
        Root.agent,
        Subsystems.logConsumer,
        Subsystems.l4,
        Ports.dataPlane,
        Ports.clock,
        Servers.metrics,
        Subsystems.metrics,
        Ports.problems,
        Subsystems.health,
        Root.container,
      ],
    )
    .inSingletonScope();
});
