import type { Container, ServiceIdentifier } from 'inversify';
import type { PrometheusServer } from '../adapters/metrics/prometheus-server.js';
import type { Agent } from '../app/agent/agent.js';
import type { OptionalServerSubsystem } from '../app/agent/optional-server-subsystem.js';
import type { HealthSubsystem } from '../app/dataplane/health-subsystem.js';
import type { L4Subsystem } from '../app/dataplane/l4-subsystem.js';
import type { LogConsumer } from '../app/log/log-consumer.js';
import type { LogStoreSubsystem } from '../app/log/log-store-subsystem.js';
import type { ControlPlaneSubsystem } from '../app/resource/control-plane-subsystem.js';
import type { Clock } from '../ports/clock.js';
import type { DataPlane } from '../ports/dataplane/data-plane.js';
import type { HealthProber } from '../ports/dataplane/health-prober.js';
import type { ListenPortMemory } from '../ports/dataplane/listen-port-memory.js';
import type { Explainer } from '../ports/driving/explainer.js';
import type { Operations } from '../ports/driving/operations.js';
import type { Resources } from '../ports/driving/resources.js';
import type { DrivingServer } from '../ports/driving/server.js';
import type { OwnedLog } from '../ports/log/ordered-log.js';
import type { Logger } from '../ports/logger.js';
import type { Outbox } from '../ports/outbox/outbox.js';
import type { Facts } from './facts.js';

const token = <T>(name: string): ServiceIdentifier<T> => Symbol.for(name);

export const Ports = {
  clock: token<Clock>('port.clock'),
  logger: token<Logger>('port.logger'),
  outbox: token<Outbox>('port.outbox'),
  log: token<OwnedLog>('port.log'),
  dataPlane: token<DataPlane>('port.dataPlane'),
  healthProber: token<HealthProber>('port.healthProber'),
  listenPortMemory: token<ListenPortMemory>('port.listenPortMemory'),
};

export const UseCases = {
  resources: token<Resources>('useCase.resources'),
  operations: token<Operations>('useCase.operations'),
  explainer: token<Explainer>('useCase.explainer'),
};

export const Subsystems = {
  logStore: token<LogStoreSubsystem>('subsystem.logStore'),
  logConsumer: token<LogConsumer>('subsystem.logConsumer'),
  controlPlane: token<ControlPlaneSubsystem>('subsystem.controlPlane'),
  l4: token<L4Subsystem>('subsystem.l4'),
  metrics: token<OptionalServerSubsystem>('subsystem.metrics'),
  health: token<HealthSubsystem>('subsystem.health'),
};

export const Servers = {
  admin: token<DrivingServer>('server.admin'),
  metrics: token<PrometheusServer>('server.metrics'),
};

export const Root = {
  facts: token<Facts>('root.facts'),
  agent: token<Agent>('root.agent'),
  container: token<Container>('root.container'),
};
