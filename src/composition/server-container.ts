import { Container } from 'inversify';
import { ServerSubsystem } from '../app/agent/server-subsystem.js';
import type { Subsystem } from '../app/agent/subsystem.js';
import type { Logger } from '../ports/logger.js';
import type { ControlPlane } from './control-plane.js';
import type { Facts } from './facts.js';
import { auditModule } from './modules/audit.js';
import { coreModule } from './modules/core.js';
import { fleetModule } from './modules/fleet.js';
import { fleetMetricsModule } from './modules/fleet-metrics.js';
import { fleetApiServersModule } from './modules/loadbalancer.js';
import { logModule } from './modules/log.js';
import { fleetOverlayModule } from './modules/overlay.js';
import { remoteAdminModule } from './modules/remote-admin.js';
import { serverModule } from './modules/server.js';
import { fleetVipModule } from './modules/vip.js';
import { FleetPorts, FleetServers, FleetSubsystems, Ports, Root, Servers, Subsystems } from './tokens.js';

/** A control plane. Nothing runs until its agent starts. */
export function buildServerContainer(facts: Facts, logger: Logger, controlPlane: ControlPlane): Container {
  const container = new Container();
  container.bind(Root.facts).toConstantValue(facts);
  container.bind(Root.controlPlane).toConstantValue(controlPlane);
  container.bind(Root.container).toConstantValue(container);
  container.bind(Ports.logger).toConstantValue(logger);
  container.bind(Ports.ownedLog).toConstantValue(controlPlane.log);
  container.load(coreModule, auditModule, serverModule, logModule);
  container.load(fleetModule, fleetOverlayModule, fleetApiServersModule, fleetVipModule, remoteAdminModule, fleetMetricsModule);
  const agent = container.get(Root.agent);
  for (const subsystem of subsystemsInOrder(container)) agent.register(subsystem);
  return container;
}

/** Each may rely on those before it; they stop in reverse. Nodes are let in last. */
function subsystemsInOrder(container: Container): readonly Subsystem[] {
  return [
    container.get(Subsystems.logStore),
    container.get(Subsystems.logConsumer),
    container.get(Subsystems.controlPlane),
    container.get(Subsystems.audit),
    container.get(FleetSubsystems.enrolment),
    container.get(FleetSubsystems.fleet),
    container.get(FleetSubsystems.nodeProposals),
    container.get(FleetSubsystems.l1),
    container.get(FleetSubsystems.l2),
    container.get(Subsystems.metrics),
    new ServerSubsystem('admin', container.get(Servers.admin)),
    ...remoteAdmin(container),
    new ServerSubsystem('registration', container.get(FleetServers.registration)),
    new ServerSubsystem('nodes', container.get(FleetServers.nodes), () => container.get(FleetPorts.sessions).goodbye()),
  ];
}

/** Of who is let in, revocations have been read by then. */
function remoteAdmin(container: Container): readonly Subsystem[] {
  if (container.get(Root.facts).config.serverAdminListen === 'off') return [];
  return [container.get(FleetSubsystems.adminPair), new ServerSubsystem('remote admin', container.get(FleetServers.admin))];
}
