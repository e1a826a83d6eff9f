import { ContainerModule } from 'inversify';
import { NetworkHealthProber } from '../../adapters/dataplane/network-health-prober.js';
import { HealthSubsystem } from '../../app/dataplane/health-subsystem.js';
import { Ports, Root, Subsystems } from '../tokens.js';

export const healthModule = new ContainerModule(({ bind }) => {
  bind(Ports.healthProber).toConstantValue(new NetworkHealthProber());
  bind(Subsystems.health)
    .toResolvedValue(
      ({ mode, identity }, log, view, prober, clock, logger, outbox) =>
        new HealthSubsystem({
          host: { nodeId: identity.nodeId, alone: mode === 'dev' },
          log,
          view,
          prober,
          clock,
          random: Math.random,
          logger: logger.child({ subsystem: 'health' }),
          outbox,
        }),
      [Root.facts, Ports.log, Subsystems.logConsumer, Ports.healthProber, Ports.clock, Ports.logger, Ports.outbox],
    )
    .inSingletonScope();
});
