import { ContainerModule } from 'inversify';
import { PrometheusMetrics } from '../../adapters/metrics/prometheus-metrics.js';
import { PrometheusServer } from '../../adapters/metrics/prometheus-server.js';
import { OptionalServerSubsystem } from '../../app/agent/optional-server-subsystem.js';
import { NodePorts, Ports, Root, Servers, Subsystems, UseCases } from '../tokens.js';

export const metricsModule = new ContainerModule(({ bind }) => {
  bind(Servers.metrics)
    .toResolvedValue(
      ({ mode, config }, agent, l4, health, outbox, logger, container) => {
        const metrics = new PrometheusMetrics({
          // Asked for at the scrape: operations show the metrics' address, so neither can be built first.
          status: () => container.get(UseCases.operations).status(),
          listeners: () => container.get(UseCases.operations).traffic().listeners,
          checks: () => health.counts(),
          outbox: () => outbox.stats(),
          reconciles: () => l4.reconciles(),
          ...(container.isBound(NodePorts.linkFigures) ? { link: container.get(NodePorts.linkFigures) } : {}),
          ...(container.isBound(UseCases.overlayStatus) ? { overlay: container.get(UseCases.overlayStatus) } : {}),
          ...(container.isBound(UseCases.vipStatus) ? { vip: container.get(UseCases.vipStatus) } : {}),
        });
        const pending = () => agent.states().flatMap(({ name, phase }) => (phase === 'ready' ? [] : [name]));
        return new PrometheusServer({ listen: config.metricsListen, mayMove: mode === 'dev', metrics, pending, logger });
      },
      [Root.facts, Root.agent, Subsystems.l4, Subsystems.health, Ports.outbox, Ports.logger, Root.container],
    )
    .inSingletonScope();
  bind(Subsystems.metrics)
    .toResolvedValue(
      (server, clock, logger) => new OptionalServerSubsystem({ name: 'metrics', server, clock, random: Math.random, logger }),
      [Servers.metrics, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
});
