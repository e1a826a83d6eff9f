import type { Container, ServiceIdentifier } from 'inversify';
import type { FleetParts } from '../adapters/admin/fleet-handlers.js';
import type { GrpcRemoteAdminServer } from '../adapters/admin/grpc-remote-admin-server.js';
import type { NodeParts } from '../adapters/admin/node-handlers.js';
import type { DnsServer } from '../adapters/dns/dns-server.js';
import type { GrpcEnrolmentServer } from '../adapters/link/grpc-enrolment-server.js';
import type { GrpcNodeServer } from '../adapters/link/grpc-node-server.js';
import type { LinkConnections } from '../adapters/link/link-connections.js';
import type { GrpcLogConnection } from '../adapters/log/grpc-log-connection.js';
import type { LogServiceHandler } from '../adapters/log/grpc-log-handler.js';
import type { ControlPlaneFigures } from '../adapters/metrics/control-plane-metrics.js';
import type { LinkFigures } from '../adapters/metrics/link-metrics.js';
import type { PrometheusServer } from '../adapters/metrics/prometheus-server.js';
import type { Agent } from '../app/agent/agent.js';
import type { OptionalServerSubsystem } from '../app/agent/optional-server-subsystem.js';
import type { Subsystem } from '../app/agent/subsystem.js';
import type { AuditSubsystem } from '../app/audit/audit-subsystem.js';
import type { AuthoritySubsystem } from '../app/certificate/authority-subsystem.js';
import type { EnrolmentService } from '../app/certificate/enrolment-service.js';
import type { EnrolmentSubsystem } from '../app/certificate/enrolment-subsystem.js';
import type { EnrolmentView } from '../app/certificate/enrolment-view.js';
import type { RenewalSubsystem } from '../app/certificate/renewal-subsystem.js';
import type { ServerPairSubsystem } from '../app/certificate/server-pair-subsystem.js';
import type { CarriedListeners } from '../app/dataplane/carried-listeners.js';
import type { HealthSubsystem } from '../app/dataplane/health-subsystem.js';
import type { KernelPathSubsystem } from '../app/dataplane/kernel-path-subsystem.js';
import type { L4Subsystem } from '../app/dataplane/l4-subsystem.js';
import type { PathMoves } from '../app/dataplane/path-moves.js';
import type { VipRoutesSubsystem } from '../app/dataplane/vip-routes-subsystem.js';
import type { Dispatcher } from '../app/dispatch/dispatcher.js';
import type { InstructionBodies } from '../app/dispatch/instruction-bodies.js';
import type { InstructionBook } from '../app/dispatch/instruction-book.js';
import type { OutputRelay } from '../app/dispatch/output-relay.js';
import type { ZoneAnswers } from '../app/dns/zone-answers.js';
import type { ZoneFeed } from '../app/dns/zone-feed.js';
import type { DnsmasqEffect } from '../app/dnsmasq/dnsmasq-effect.js';
import type { EtcdMembershipService } from '../app/etcd/etcd-membership-service.js';
import type { Cordons } from '../app/fleet/cordons.js';
import type { FleetSubsystem } from '../app/fleet/fleet-subsystem.js';
import type { NodeEvents } from '../app/fleet/node-events.js';
import type { CapabilityEffects } from '../app/instruction/effects.js';
import type { InstructionEngine } from '../app/instruction/instruction-engine.js';
import type { ClusterPrograms } from '../app/kubernetes/cluster-programs.js';
import type { HelmEffect } from '../app/kubernetes/helm-effect.js';
import type { JoinEffect } from '../app/kubernetes/join-effect.js';
import type { KubernetesEffect } from '../app/kubernetes/kubernetes-effect.js';
import type { UpgradeEffect } from '../app/kubernetes/upgrade-effect.js';
import type { UpgradeLog } from '../app/kubernetes/upgrade-log.js';
import type { LinkSubsystem } from '../app/link/link-subsystem.js';
import type { NodeSessions } from '../app/link/node-sessions.js';
import type { PresenceBoard } from '../app/link/presence-board.js';
import type { BalancerSubsystem } from '../app/loadbalancer/balancer-subsystem.js';
import type { FleetApiServers } from '../app/loadbalancer/fleet-api-servers.js';
import type { BoundNodeNames } from '../app/log/bound-node-names.js';
import type { GuardedProposals } from '../app/log/guarded-proposals.js';
import type { LocalLog } from '../app/log/local-log.js';
import type { LogStoreSubsystem } from '../app/log/log-store-subsystem.js';
import type { RemoteLogConsumer } from '../app/log/remote-log-consumer.js';
import type { ViewKeeper } from '../app/log/view-keeper.js';
import type { NodeInfoSubsystem } from '../app/node/node-info-subsystem.js';
import type { FleetOverlay } from '../app/overlay/fleet-overlay.js';
import type { OverlayEffect } from '../app/overlay/overlay-effect.js';
import type { OverlayKeeper } from '../app/overlay/overlay-keeper.js';
import type { OverlaySubsystem } from '../app/overlay/overlay-subsystem.js';
import type { PeerPushes } from '../app/overlay/peer-pushes.js';
import type { ControlPlaneSubsystem } from '../app/resource/control-plane-subsystem.js';
import type { SessionRelay } from '../app/session/session-relay.js';
import type { Sessions } from '../app/session/sessions.js';
import type { RemovalEffect } from '../app/uninstall/removal-effect.js';
import type { FleetVips } from '../app/vip/fleet-vips.js';
import type { VipEffect } from '../app/vip/vip-effect.js';
import type { VipKeeper } from '../app/vip/vip-keeper.js';
import type { VipSubsystem } from '../app/vip/vip-subsystem.js';
import type { Config } from '../domain/config/model.js';
import type { AuditLog } from '../ports/audit/audit-log.js';
import type { Clock } from '../ports/clock.js';
import type { CommandRunner } from '../ports/command/command-runner.js';
import type { DataPlane } from '../ports/dataplane/data-plane.js';
import type { HealthProber } from '../ports/dataplane/health-prober.js';
import type { ListenPortMemory } from '../ports/dataplane/listen-port-memory.js';
import type { PacketFilter } from '../ports/dataplane/packet-filter.js';
import type { DnsResponder } from '../ports/dns/dns-responder.js';
import type { AdminCertificates } from '../ports/driving/admin-certificates.js';
import type { BalancerStatus } from '../ports/driving/api-balancer.js';
import type { Explainer } from '../ports/driving/explainer.js';
import type { FleetNodes, Instructions } from '../ports/driving/fleet.js';
import type { FleetStatus, LinkStatus, Operations, OverlayStatus, VipStatus } from '../ports/driving/operations.js';
import type { Registrations } from '../ports/driving/registrations.js';
import type { Resources } from '../ports/driving/resources.js';
import type { Roots } from '../ports/driving/roots.js';
import type { DrivingServer } from '../ports/driving/server.js';
import type { Tokens } from '../ports/driving/tokens.js';
import type { Journal } from '../ports/instruction/journal.js';
import type { TaskRunner } from '../ports/instruction/task-runner.js';
import type { ControlLink } from '../ports/link/control-link.js';
import type { NodewardCalls } from '../ports/link/nodeward-calls.js';
import type { OrderedLog, OwnedLog } from '../ports/log/ordered-log.js';
import type { StateView } from '../ports/log/state-view.js';
import type { Logger } from '../ports/logger.js';
import type { ProblemSource } from '../ports/node/problem-source.js';
import type { WebClient } from '../ports/outbound/web-client.js';
import type { Outbox } from '../ports/outbox/outbox.js';
import type { VirtualAddress } from '../ports/vip/virtual-address.js';
import type { ControlPlane } from './control-plane.js';
import type { EnrolledNode } from './enrolled-node.js';
import type { Facts } from './facts.js';

const token = <T>(name: string): ServiceIdentifier<T> => Symbol.for(name);

export const Ports = {
  clock: token<Clock>('port.clock'),
  logger: token<Logger>('port.logger'),
  outbox: token<Outbox>('port.outbox'),
  audit: token<AuditLog>('port.audit'),
  commands: token<CommandRunner>('port.commands'),
  log: token<OrderedLog>('port.log'),
  /** The same, where this process holds it itself. */
  ownedLog: token<OwnedLog>('port.ownedLog'),
  /** Whose head those are answered by who ask this node. */
  askedLog: token<Pick<OrderedLog, 'head'>>('port.askedLog'),
  /** What is wrong beside the data plane; asked when `status` is. */
  problems: token<ProblemSource>('port.problems'),
  dataPlane: token<DataPlane>('port.dataPlane'),
  packetFilter: token<PacketFilter>('port.packetFilter'),
  pathMoves: token<PathMoves>('port.pathMoves'),
  /** Whoever carries them. */
  listeners: token<CarriedListeners>('port.listeners'),
  dnsResponder: token<DnsResponder>('port.dnsResponder'),
  healthProber: token<HealthProber>('port.healthProber'),
  listenPortMemory: token<ListenPortMemory>('port.listenPortMemory'),
};

export const UseCases = {
  resources: token<Resources>('useCase.resources'),
  operations: token<Operations>('useCase.operations'),
  explainer: token<Explainer>('useCase.explainer'),
  /** Of a node of a fleet. */
  node: token<NodeParts>('useCase.node'),
  /** Of a control plane. */
  fleet: token<FleetParts>('useCase.fleet'),
  linkStatus: token<() => LinkStatus>('useCase.linkStatus'),
  overlayStatus: token<() => OverlayStatus | undefined>('useCase.overlayStatus'),
  apiBalancer: token<() => BalancerStatus>('useCase.apiBalancer'),
  vipStatus: token<() => VipStatus>('useCase.vipStatus'),
};

export const Subsystems = {
  logStore: token<LogStoreSubsystem>('subsystem.logStore'),
  audit: token<AuditSubsystem>('subsystem.audit'),
  logConsumer: token<StateView & Subsystem>('subsystem.logConsumer'),
  controlPlane: token<ControlPlaneSubsystem>('subsystem.controlPlane'),
  l4: token<L4Subsystem>('subsystem.l4'),
  /** Only where the kernel carries services. */
  kernelPath: token<KernelPathSubsystem>('subsystem.kernelPath'),
  metrics: token<OptionalServerSubsystem>('subsystem.metrics'),
  health: token<HealthSubsystem>('subsystem.health'),
  dnsZone: token<ZoneAnswers>('subsystem.dnsZone'),
  dnsFeed: token<ZoneFeed>('subsystem.dnsFeed'),
  dns: token<OptionalServerSubsystem>('subsystem.dns'),
};

export const Servers = {
  admin: token<DrivingServer>('server.admin'),
  metrics: token<PrometheusServer>('server.metrics'),
  dns: token<DnsServer>('server.dns'),
};

export const Root = {
  facts: token<Facts>('root.facts'),
  agent: token<Agent>('root.agent'),
  container: token<Container>('root.container'),
  controlPlane: token<ControlPlane>('root.controlPlane'),
  node: token<EnrolledNode>('root.node'),
};

/** Of a node of a fleet. */
export const NodePorts = {
  remoteLog: token<GrpcLogConnection>('node.remoteLog'),
  localLog: token<LocalLog>('node.localLog'),
  viewKeeper: token<ViewKeeper>('node.viewKeeper'),
  journal: token<Journal>('node.journal'),
  tasks: token<TaskRunner>('node.tasks'),
  kubernetes: token<KubernetesEffect>('node.kubernetes'),
  helm: token<HelmEffect>('node.helm'),
  join: token<JoinEffect>('node.join'),
  clusterPrograms: token<ClusterPrograms>('node.clusterPrograms'),
  upgrade: token<UpgradeEffect>('node.upgrade'),
  upgradeLog: token<UpgradeLog>('node.upgradeLog'),
  /** What each capability does for an instruction. */
  effects: token<CapabilityEffects>('node.effects'),
  dnsmasq: token<DnsmasqEffect>('node.dnsmasq'),
  etcd: token<EtcdMembershipService>('node.etcd'),
  web: token<WebClient>('node.web'),
  /** What is live of it is the newest. */
  settings: token<{ current: Config }>('node.settings'),
  connections: token<LinkConnections>('node.connections'),
  link: token<ControlLink>('node.link'),
  /** Random, one per process: what tells its streams from those of another. */
  instance: token<string>('node.instance'),
  interactiveSessions: token<Sessions>('node.interactiveSessions'),
  calls: token<NodewardCalls>('node.calls'),
  linkFigures: token<() => LinkFigures>('node.linkFigures'),
  overlayKeeper: token<OverlayKeeper>('node.overlayKeeper'),
  overlayEffect: token<OverlayEffect>('node.overlayEffect'),
  removal: token<RemovalEffect>('node.removal'),
  vipAddress: token<VirtualAddress>('node.vipAddress'),
  vipKeeper: token<VipKeeper>('node.vipKeeper'),
  vipEffect: token<VipEffect>('node.vipEffect'),
};

export const NodeSubsystems = {
  logConsumer: token<RemoteLogConsumer>('node.subsystem.logConsumer'),
  vipRoutes: token<VipRoutesSubsystem>('node.subsystem.vipRoutes'),
  engine: token<InstructionEngine>('node.subsystem.engine'),
  renewal: token<RenewalSubsystem>('node.subsystem.renewal'),
  nodeInfo: token<NodeInfoSubsystem>('node.subsystem.nodeInfo'),
  overlay: token<OverlaySubsystem>('node.subsystem.overlay'),
  balancer: token<BalancerSubsystem>('node.subsystem.balancer'),
  /** Only where the node may have a virtual IP. */
  vip: token<VipSubsystem>('node.subsystem.vip'),
  link: token<LinkSubsystem>('node.subsystem.link'),
};

/** Of a control plane. */
export const FleetPorts = {
  enrolmentView: token<EnrolmentView>('fleet.enrolmentView'),
  presence: token<PresenceBoard>('fleet.presence'),
  cordons: token<Cordons>('fleet.cordons'),
  book: token<InstructionBook>('fleet.book'),
  bodies: token<InstructionBodies>('fleet.bodies'),
  dispatcher: token<Dispatcher>('fleet.dispatcher'),
  sessions: token<NodeSessions>('fleet.sessions'),
  names: token<BoundNodeNames>('fleet.names'),
  outputs: token<OutputRelay>('fleet.outputs'),
  sessionRelay: token<SessionRelay>('fleet.sessionRelay'),
  logHandler: token<LogServiceHandler>('fleet.logHandler'),
  status: token<() => FleetStatus>('fleet.status'),
  figures: token<() => ControlPlaneFigures>('fleet.figures'),
  events: token<NodeEvents>('fleet.events'),
  overlay: token<FleetOverlay>('fleet.overlay'),
  peerPushes: token<PeerPushes>('fleet.peerPushes'),
  apiServers: token<FleetApiServers>('fleet.apiServers'),
  vips: token<FleetVips>('fleet.vips'),
};

export const FleetUseCases = {
  enrolment: token<EnrolmentService>('fleet.useCase.enrolment'),
  tokens: token<Tokens>('fleet.useCase.tokens'),
  registrations: token<Registrations>('fleet.useCase.registrations'),
  instructions: token<Instructions>('fleet.useCase.instructions'),
  nodes: token<FleetNodes>('fleet.useCase.nodes'),
  certificates: token<AdminCertificates>('fleet.useCase.certificates'),
  roots: token<Roots>('fleet.useCase.roots'),
};

export const FleetSubsystems = {
  authorities: token<AuthoritySubsystem>('fleet.subsystem.authorities'),
  enrolment: token<EnrolmentSubsystem>('fleet.subsystem.enrolment'),
  fleet: token<FleetSubsystem>('fleet.subsystem.fleet'),
  nodeProposals: token<GuardedProposals>('fleet.subsystem.nodeProposals'),
  l1: token<ServerPairSubsystem>('fleet.subsystem.l1'),
  l2: token<ServerPairSubsystem>('fleet.subsystem.l2'),
  adminPair: token<ServerPairSubsystem>('fleet.subsystem.adminPair'),
};

export const FleetServers = {
  registration: token<GrpcEnrolmentServer>('fleet.server.registration'),
  nodes: token<GrpcNodeServer>('fleet.server.nodes'),
  /** Only where it is asked for. */
  admin: token<GrpcRemoteAdminServer>('fleet.server.admin'),
};
