import { ContainerModule } from 'inversify';
import { FileListenPortMemory } from '../../adapters/dataplane/file-listen-port-memory.js';
import { NativeDataPlane } from '../../adapters/dataplane/native-data-plane.js';
import { ExplainService } from '../../app/dataplane/explain-service.js';
import { L4Subsystem } from '../../app/dataplane/l4-subsystem.js';
import { Ports, Root, Subsystems, UseCases } from '../tokens.js';

export const dataplaneModule = new ContainerModule(({ bind }) => {
  bind(Ports.dataPlane)
    .toResolvedValue(
      ({ addon, config, carried }) =>
        carried ??
        new NativeDataPlane(() => addon, {
          threads: config.threads === 'auto' ? 0 : config.threads,
          maxConnections: config.maxConnections === 'auto' ? 0 : config.maxConnections,
          busyPollUs: config.busyPollUs,
          ejectionFailures: config.ejectionFailures,
          ejectionReturnMs: config.ejectionReturnMs,
        }),
      [Root.facts],
    )
    .inSingletonScope();
  bind(Ports.listenPortMemory)
    .toResolvedValue(({ paths }) => new FileListenPortMemory(paths.listenPorts), [Root.facts])
    .inSingletonScope();
  bind(Subsystems.l4)
    .toResolvedValue(
      ({ mode, config, identity, inherited }, view, dataPlane, memory, clock, logger, outbox) =>
        new L4Subsystem({
          nodeId: identity.nodeId,
          view,
          dataPlane,
          memory,
          clock,
          random: Math.random,
          logger: logger.child({ subsystem: 'dataplane' }),
          mayMovePorts: mode === 'dev',
          connectTimeoutMs: config.connectTimeoutMs,
          outbox,
          inherited,
        }),
      [Root.facts, Subsystems.logConsumer, Ports.dataPlane, Ports.listenPortMemory, Ports.clock, Ports.logger, Ports.outbox],
    )
    .inSingletonScope();
  bind(UseCases.explainer)
    .toResolvedValue(
      ({ identity }, log, view, listeners, dataPlane) =>
        new ExplainService({ nodeId: identity.nodeId, log, view, listeners, dataPlane }),
      [Root.facts, Ports.askedLog, Subsystems.logConsumer, Subsystems.l4, Ports.dataPlane],
    )
    .inSingletonScope();
});
