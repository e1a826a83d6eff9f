import { ContainerModule } from 'inversify';
import { ControlPlaneSubsystem } from '../../app/resource/control-plane-subsystem.js';
import { ResourceService } from '../../app/resource/resource-service.js';
import { vipRange } from '../../domain/dataplane/vip.js';
import { formatIpv4Range } from '../../domain/kernel/network.js';
import { Ports, Root, Subsystems, UseCases } from '../tokens.js';

export const resourceModule = new ContainerModule(({ bind }) => {
  bind(UseCases.resources)
    .toResolvedValue(
      ({ config }, log, view, listeners, clock) =>
        new ResourceService({ log, view, listeners, clock, vipRange: vipRange(formatIpv4Range(config.vipRange)) }),
      [Root.facts, Ports.log, Subsystems.logConsumer, Ports.listeners, Ports.clock],
    )
    .inSingletonScope();
  bind(Subsystems.controlPlane)
    .toResolvedValue(
      ({ config }, log, view) => new ControlPlaneSubsystem(log, view, vipRange(formatIpv4Range(config.vipRange))),
      [Root.facts, Ports.log, Subsystems.logConsumer],
    )
    .inSingletonScope();
});
