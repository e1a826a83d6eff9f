import { ContainerModule } from 'inversify';
import { PrometheusMetrics } from '../../adapters/metrics/prometheus-metrics.js';
import { PrometheusServer } from '../../adapters/metrics/prometheus-server.js';
import type { Agent } from '../../app/agent/agent.js';
import { OptionalServerSubsystem } from '../../app/agent/optional-server-subsystem.js';
import { NodePorts, Ports, Root, Servers, Subsystems, UseCases } from '../tokens.js';

export const metricsModule = new ContainerModule(({ bind }) => {
  bind(Servers.metrics)
    .toResolvedValue(
      ({ mode, config }, agent, l4, health, zone, responder, outbox, logger, container) => {
        const metrics = new PrometheusMetrics({
          // Asked for at the scrape: operations show the metrics' address, so neither can be built first.
          status: () => container.get(UseCases.operations).status(),
          listeners: () => container.get(UseCases.operations).traffic().listeners,
          checks: () => health.counts(),
          dns: () => {
            const { answered, ...figures } = responder.stats();
            return { ...figures, queries: [...answered, ...zone.counts()] };
          },
          outbox: () => outbox.stats(),
          reconciles: () => l4.reconciles(),
          ...(container.isBound(Subsystems.kernelPath)
            ? { kernelPath: () => container.get(Subsystems.kernelPath).figures() }
            : {}),
          ...(container.isBound(NodePorts.linkFigures) ? { link: container.get(NodePorts.linkFigures) } : {}),
          ...(container.isBound(UseCases.apiBalancer) ? { apiBalancer: container.get(UseCases.apiBalancer) } : {}),
          ...(container.isBound(UseCases.overlayStatus) ? { overlay: container.get(UseCases.overlayStatus) } : {}),
          ...(container.isBound(UseCases.vipStatus) ? { vip: container.get(UseCases.vipStatus) } : {}),
        });
        const pending = () => pendingOf(agent);
        return new PrometheusServer({ listen: config.metricsListen, mayMove: mode === 'dev', metrics, pending, logger });
      },
      [
        Root.facts,
        Root.agent,
        Subsystems.l4,
        Subsystems.health,
        Subsystems.dnsZone,
        Ports.dnsResponder,
        Ports.outbox,
        Ports.logger,
        Root.container,
      ],
    )
    .inSingletonScope();
  bindMetricsSubsystem(bind);
});

type Bind = Parameters<ConstructorParameters<typeof ContainerModule>[0]>[0]['bind'];

/** Whatever is served there: of a node, or of a control plane. */
export function bindMetricsSubsystem(bind: Bind): void {
  bind(Subsystems.metrics)
    .toResolvedValue(
      (server, clock, logger) => new OptionalServerSubsystem({ name: 'metrics', server, clock, random: Math.random, logger }),
      [Servers.metrics, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
}

/** The subsystems that do not serve yet. */
export function pendingOf(agent: Agent): readonly string[] {
  return agent.states().flatMap(({ name, phase }) => (phase === 'ready' ? [] : [name]));
}
