import { Container } from 'inversify';
import { ServerSubsystem } from '../app/agent/server-subsystem.js';
import type { Subsystem } from '../app/agent/subsystem.js';
import type { Logger } from '../ports/logger.js';
import type { EnrolledNode } from './enrolled-node.js';
import type { Facts } from './facts.js';
import { adminModule, nodeAdminModule } from './modules/admin.js';
import { agentModule } from './modules/agent.js';
import { auditModule } from './modules/audit.js';
import { coreModule } from './modules/core.js';
import { dataplaneModule } from './modules/dataplane.js';
import { dnsModule } from './modules/dns.js';
import { dnsmasqModule } from './modules/dnsmasq.js';
import { etcdModule } from './modules/etcd.js';
import { healthModule } from './modules/health.js';
import { kernelCarries, kernelPathModule } from './modules/kernel-path.js';
import { kubernetesModule } from './modules/kubernetes.js';
import { linkModule } from './modules/link.js';
import { loadbalancerModule } from './modules/loadbalancer.js';
import { metricsModule } from './modules/metrics.js';
import { overlayModule } from './modules/overlay.js';
import { uninstallModule } from './modules/uninstall.js';
import { upgradeModule } from './modules/upgrade.js';
import { noVipModule, vipModule } from './modules/vip.js';
import { NodeSubsystems, Ports, Root, Servers, Subsystems } from './tokens.js';

/** A node of a fleet. Nothing runs until its agent starts. */
export function buildAgentContainer(facts: Facts, logger: Logger, node: EnrolledNode): Container {
  const container = new Container();
  container.bind(Root.facts).toConstantValue(facts);
  container.bind(Root.node).toConstantValue(node);
  container.bind(Root.container).toConstantValue(container);
  container.bind(Ports.logger).toConstantValue(logger);
  container.load(
    coreModule,
    auditModule,
    agentModule,
    linkModule,
    kubernetesModule,
    upgradeModule,
    overlayModule,
    loadbalancerModule,
    facts.config.vipAddress === undefined ? noVipModule : vipModule(facts.config.vipAddress),
    dnsmasqModule,
    etcdModule,
    uninstallModule,
    dataplaneModule,
    ...(kernelCarries(facts) ? [kernelPathModule] : []),
    dnsModule,
    healthModule,
    nodeAdminModule,
    adminModule,
    metricsModule,
  );
  const agent = container.get(Root.agent);
  for (const subsystem of subsystemsInOrder(container)) agent.register(subsystem);
  return container;
}

/** Each may rely on those before it; they stop in reverse. What the node knows serves before anything remote is asked. */
function subsystemsInOrder(container: Container): readonly Subsystem[] {
  return [
    container.get(Subsystems.audit),
    container.get(Subsystems.logConsumer),
    container.get(NodeSubsystems.vipRoutes),
    container.get(Subsystems.l4),
    ...(container.isBound(Subsystems.kernelPath) ? [container.get(Subsystems.kernelPath)] : []),
    container.get(Subsystems.health),
    container.get(Subsystems.dnsZone),
    container.get(Subsystems.dnsFeed),
    container.get(Subsystems.dns),
    new ServerSubsystem('admin', container.get(Servers.admin)),
    container.get(Subsystems.metrics),
    container.get(NodeSubsystems.overlay),
    container.get(NodeSubsystems.balancer),
    ...(container.isBound(NodeSubsystems.vip) ? [container.get(NodeSubsystems.vip)] : []),
    container.get(NodeSubsystems.engine),
    container.get(NodeSubsystems.renewal),
    container.get(NodeSubsystems.link),
    container.get(NodeSubsystems.nodeInfo),
  ];
}
