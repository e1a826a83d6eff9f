import { ContainerModule } from 'inversify';
import { FileListenPortMemory } from '../../adapters/dataplane/file-listen-port-memory.js';
import { NativeDataPlane } from '../../adapters/dataplane/native-data-plane.js';
import { CarriedListeners } from '../../app/dataplane/carried-listeners.js';
import { ExplainService } from '../../app/dataplane/explain-service.js';
import { L4Subsystem } from '../../app/dataplane/l4-subsystem.js';
import { PathMoves } from '../../app/dataplane/path-moves.js';
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
  bind(Ports.pathMoves).toConstantValue(new PathMoves());
  bind(Ports.listeners)
    .toResolvedValue(
      (l4, container) =>
        new CarriedListeners(l4, container.isBound(Subsystems.kernelPath) ? container.get(Subsystems.kernelPath) : undefined),
      [Subsystems.l4, Root.container],
    )
    .inSingletonScope();
  bind(Subsystems.l4)
    .toResolvedValue(
      ({ mode, config, identity, inherited }, view, dataPlane, memory, moves, clock, logger, outbox, container) =>
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
          kernel: container.isBound(Subsystems.kernelPath),
          moves,
          inherited,
        }),
      [
        ...([Root.facts, Subsystems.logConsumer, Ports.dataPlane, Ports.listenPortMemory, Ports.pathMoves] as const),
        ...([Ports.clock, Ports.logger, Ports.outbox, Root.container] as const),
      ],
    )
    .inSingletonScope();
  bind(UseCases.explainer)
    .toResolvedValue(
      ({ identity }, log, view, listeners, dataPlane, container) => {
        const kernel = container.isBound(Subsystems.kernelPath);
        return new ExplainService({ nodeId: identity.nodeId, log, view, listeners, dataPlane, kernel });
      },
      [Root.facts, Ports.askedLog, Subsystems.logConsumer, Ports.listeners, Ports.dataPlane, Root.container],
    )
    .inSingletonScope();
});
