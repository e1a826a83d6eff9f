import { ContainerModule } from 'inversify';
import { SqliteOrderedLog } from '../../adapters/log/sqlite-ordered-log.js';
import { LogConsumer } from '../../app/log/log-consumer.js';
import { LogStoreSubsystem } from '../../app/log/log-store-subsystem.js';
import { Ports, Root, Subsystems } from '../tokens.js';

export const logModule = new ContainerModule(({ bind }) => {
  bind(Ports.ownedLog)
    .toResolvedValue(
      ({ paths }, clock, logger) =>
        new SqliteOrderedLog({
          file: paths.logDb,
          clock,
          report: ({ event, ...facts }) => {
            if (event === 'copied') logger.debug('log copied', facts);
            else logger.warn(`log: ${event}`, facts);
          },
        }),
      [Root.facts, Ports.clock, Ports.logger],
    )
    .inSingletonScope();
  bind(Ports.log).toResolvedValue((log) => log, [Ports.ownedLog]);
  bind(Ports.askedLog).toResolvedValue((log) => log, [Ports.ownedLog]);
  bind(Ports.problems).toResolvedValue((log) => log, [Ports.ownedLog]);
  bind(Subsystems.logStore)
    .toResolvedValue((log) => new LogStoreSubsystem(log), [Ports.ownedLog])
    .inSingletonScope();
  bind(Subsystems.logConsumer)
    .toResolvedValue((log, clock, logger) => new LogConsumer(log, clock, logger), [Ports.log, Ports.clock, Ports.logger])
    .inSingletonScope();
});
