import { X509Certificate } from 'node:crypto';
import { ContainerModule } from 'inversify';
import { readValidity } from '../../adapters/certificate/certificate-reader.js';
import type { CallFigures } from '../../adapters/metrics/call-meter.js';
import { ControlPlaneMetrics, type ListenerFigures } from '../../adapters/metrics/control-plane-metrics.js';
import { PrometheusServer } from '../../adapters/metrics/prometheus-server.js';
import { fleetStatus } from '../../app/fleet/fleet-status.js';
import type { StoreStatus } from '../../ports/driving/operations.js';
import { FleetPorts, FleetServers, FleetSubsystems, FleetUseCases, Ports, Root, Servers, UseCases } from '../tokens.js';
import { bindMetricsSubsystem, pendingOf } from './metrics.js';

/** What a control plane shows of itself: for `status`, and as metrics. */
export const fleetMetricsModule = new ContainerModule(({ bind }) => {
  bindStatus(bind);
  bindFigures(bind);
  bind(Servers.metrics)
    .toResolvedValue(
      ({ config }, { store, log }, agent, figures, outbox, clock, logger, container) => {
        const metrics = new ControlPlaneMetrics({
          // Asked for at the scrape: operations show the metrics' address, so neither can be built first.
          status: () => container.get(UseCases.operations).status(),
          figures,
          stores: () => ({ control: store.figures(), log: log.figures() }),
          outbox: () => outbox.stats(),
          now: () => clock.now(),
        });
        const pending = () => pendingOf(agent);
        return new PrometheusServer({ listen: config.serverMetricsListen, mayMove: false, metrics, pending, logger });
      },
      [
        ...([Root.facts, Root.controlPlane, Root.agent, FleetPorts.figures] as const),
        ...([Ports.outbox, Ports.clock, Ports.logger, Root.container] as const),
      ],
    )
    .inSingletonScope();
  bindMetricsSubsystem(bind);
});

type Bind = Parameters<ConstructorParameters<typeof ContainerModule>[0]>[0]['bind'];

function bindStatus(bind: Bind): void {
  bind(FleetPorts.status)
    .toResolvedValue(
      ({ config }, { serverId, authorities, store, log }, registered, presence, book, sessions, handler, container) => {
        const backend = config.serverEtcd.length === 0 ? 'embedded' : 'etcd';
        const roots = [
          { name: 'registration root', expiresAt: endOf(authorities.l1.root) },
          { name: 'node root', expiresAt: endOf(authorities.l2.root) },
          { name: 'admin root', expiresAt: endOf(authorities.admin.root) },
        ];
        const ports = [
          { name: 'registration', pair: container.get(FleetSubsystems.l1) },
          { name: 'nodes', pair: container.get(FleetSubsystems.l2) },
          ...(config.serverAdminListen === 'off' ? [] : [{ name: 'admin', pair: container.get(FleetSubsystems.adminPair) }]),
        ];
        const ownCertificates = () =>
          ports.flatMap(({ name, pair: { expiresAt } }) => (expiresAt === undefined ? [] : [{ name, expiresAt }]));
        return () =>
          fleetStatus({
            ...{ server: serverId, registered, presence, book, sessions },
            followers: handler.counts().watchers,
            stores: [storeStatus('control', backend, store.figures()), storeStatus('log', backend, log.figures())],
            certificates: [...ownCertificates(), ...roots],
          });
      },
      [
        ...([Root.facts, Root.controlPlane, FleetPorts.enrolmentView, FleetPorts.presence, FleetPorts.book] as const),
        ...([FleetPorts.sessions, FleetPorts.logHandler, Root.container] as const),
      ],
    )
    .inSingletonScope();
}

function storeStatus(
  name: StoreStatus['name'],
  backend: StoreStatus['backend'],
  { failingSince, answeredInMs }: CallFigures,
): StoreStatus {
  return { name, backend, failingSince, answeredInMs };
}

function bindFigures(bind: Bind): void {
  bind(FleetPorts.figures)
    .toResolvedValue(
      ({ config }, view, enrolment, sessions, dispatcher, book, proposals, container) =>
        () => {
          const nodes = container.get(FleetServers.nodes).counts();
          const admin = config.serverAdminListen === 'off' ? undefined : container.get(FleetServers.admin).counts().connections;
          const listeners = [
            ...listener('registration', container.get(FleetServers.registration).counts().connections),
            ...listener('nodes', nodes.connections),
            ...listener('admin', admin),
          ];
          return {
            tokens: view.tokens(),
            enrolment: enrolment.counters,
            sessions: sessions.counters,
            results: dispatcher.counters,
            open: book.tally.open(),
            oldestOpen: book.oldestOpen(),
            ended: book.tally.ended(),
            listeners,
            refusals: { malformed: nodes.malformed, limited: nodes.limited, certificate: nodes.refused },
            proposalsLimited: proposals.limited,
          };
        },
      [
        ...([Root.facts, FleetPorts.enrolmentView, FleetUseCases.enrolment, FleetPorts.sessions] as const),
        ...([FleetPorts.dispatcher, FleetPorts.book, FleetSubsystems.nodeProposals, Root.container] as const),
      ],
    )
    .inSingletonScope();
}

/** One that does not listen yet has no figures. */
function listener(
  name: ListenerFigures['listener'],
  figures: Omit<ListenerFigures, 'listener'> | undefined,
): readonly ListenerFigures[] {
  return figures === undefined ? [] : [{ listener: name, ...figures }];
}

function endOf(pem: string): number {
  return readValidity(new X509Certificate(pem)).notAfter;
}
