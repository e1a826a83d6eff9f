import { Container } from 'inversify';
import { ServerSubsystem } from '../app/agent/server-subsystem.js';
import type { Subsystem } from '../app/agent/subsystem.js';
import type { Logger } from '../ports/logger.js';
import type { Facts } from './facts.js';
import { adminModule } from './modules/admin.js';
import { agentModule } from './modules/agent.js';
import { coreModule } from './modules/core.js';
import { dataplaneModule } from './modules/dataplane.js';
import { dnsModule } from './modules/dns.js';
import { healthModule } from './modules/health.js';
import { kernelCarries, kernelPathModule } from './modules/kernel-path.js';
import { embeddedLogModule, logModule } from './modules/log.js';
import { metricsModule } from './modules/metrics.js';
import { resourceModule } from './modules/resource.js';
import { Ports, Root, Servers, Subsystems } from './tokens.js';

/** A node with agent and control plane in one process. Nothing runs until the agent starts. */
export function buildContainer(facts: Facts, logger: Logger): Container {
  const container = new Container();
  container.bind(Root.facts).toConstantValue(facts);
  container.bind(Root.container).toConstantValue(container);
  container.bind(Ports.logger).toConstantValue(logger);
  container.load(
    coreModule,
    agentModule,
    embeddedLogModule,
    logModule,
    dataplaneModule,
    ...(kernelCarries(facts) ? [kernelPathModule] : []),
    dnsModule,
    healthModule,
    resourceModule,
    adminModule,
    metricsModule,
  );
  const agent = container.get(Root.agent);
  for (const subsystem of subsystemsInOrder(container)) agent.register(subsystem);
  return container;
}

/** Each may rely on those before it; they stop in reverse. */
function subsystemsInOrder(container: Container): readonly Subsystem[] {
  return [
    container.get(Subsystems.logStore),
    container.get(Subsystems.logConsumer),
    container.get(Subsystems.controlPlane),
    container.get(Subsystems.l4),
    ...(container.isBound(Subsystems.kernelPath) ? [container.get(Subsystems.kernelPath)] : []),
    container.get(Subsystems.health),
    container.get(Subsystems.dnsZone),
    container.get(Subsystems.dnsFeed),
    container.get(Subsystems.dns),
    new ServerSubsystem('admin', container.get(Servers.admin)),
    container.get(Subsystems.metrics),
  ];
}
