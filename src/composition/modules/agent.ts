import { hostname } from 'node:os';
import { ContainerModule } from 'inversify';
import { LinuxHostFacts } from '../../adapters/certificate/linux-host-facts.js';
import { LinuxNodeProbe } from '../../adapters/node/linux-node-probe.js';
import { NodeInfoSubsystem } from '../../app/node/node-info-subsystem.js';
import { NodeOperations } from '../../app/node/node-operations.js';
import { NodePorts, NodeSubsystems, Ports, Root, Servers, Subsystems, UseCases } from '../tokens.js';

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
          ...(container.isBound(UseCases.apiBalancer) ? { apiBalancer: container.get(UseCases.apiBalancer) } : {}),
          ...(container.isBound(UseCases.overlayStatus) ? { overlay: container.get(UseCases.overlayStatus) } : {}),
          ...(container.isBound(UseCases.vipStatus) ? { vip: container.get(UseCases.vipStatus) } : {}),
        }),
      [
        Root.facts,
        Root.agent,
        Subsystems.logConsumer,
        Ports.listeners,
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
  bind(NodeSubsystems.nodeInfo)
    .toResolvedValue(
      ({ identity, version }, { root }, agent, log, commands, clock, logger) =>
        new NodeInfoSubsystem({
          ...{ identity, version, log, clock, random: Math.random },
          probe: new LinuxNodeProbe({ commands, host: new LinuxHostFacts(root), hostname: hostname(), clock }),
          subsystems: () => Object.fromEntries(agent.states().map(({ name, phase }) => [name, phase])),
          logger: logger.child({ subsystem: 'node-info' }),
        }),
      [Root.facts, Root.node, Root.agent, NodePorts.remoteLog, Ports.commands, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
});
