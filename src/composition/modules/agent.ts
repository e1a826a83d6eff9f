import { ContainerModule } from 'inversify';
import { SystemClock } from '../../adapters/clock/system-clock.js';
import { MemoryOutbox } from '../../adapters/outbox/memory-outbox.js';
import { Agent } from '../../app/agent/agent.js';
import { NodeOperations } from '../../app/node/node-operations.js';
import type { Facts } from '../facts.js';
import { Ports, Root, Servers, Subsystems, UseCases } from '../tokens.js';

export const agentModule = new ContainerModule(({ bind }) => {
  bind(Ports.clock).toConstantValue(new SystemClock({ unref: true }));
  bind(Ports.outbox)
    .toResolvedValue(({ config }: Facts) => new MemoryOutbox(config.outboxCapacity), [Root.facts])
    .inSingletonScope();
  bind(Root.agent)
    .toResolvedValue(
      ({ identity, mode, config }, orderedLog, logger, outbox, clock) =>
        new Agent({ identity, orderedLog, mode, logger, outbox: () => outbox, readyTimeoutMs: config.readyTimeoutMs, clock }),
      [Root.facts, Ports.log, Ports.logger, Ports.outbox, Ports.clock],
    )
    .inSingletonScope();
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
