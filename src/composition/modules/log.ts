import { ContainerModule } from 'inversify';
import { SqliteOrderedLog } from '../../adapters/log/sqlite-ordered-log.js';
import { LogConsumer } from '../../app/log/log-consumer.js';
import { LogStoreSubsystem } from '../../app/log/log-store-subsystem.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { Facts } from '../facts.js';
import { Ports, Root, Subsystems } from '../tokens.js';

/** The log of a process that is alone. */
export function embeddedLog({ paths }: Facts, clock: Clock, logger: Logger, others?: () => number | undefined): SqliteOrderedLog {
  return new SqliteOrderedLog({
    file: paths.logDb,
    clock,
    ...(others === undefined ? {} : { others }),
    report: ({ event, ...facts }) => {
      if (event === 'copied') logger.debug('log copied', facts);
      else logger.warn(`log: ${event}`, facts);
    },
  });
}

export const embeddedLogModule = new ContainerModule(({ bind }) => {
  bind(Ports.ownedLog)
    .toResolvedValue((facts, clock, logger) => embeddedLog(facts, clock, logger), [Root.facts, Ports.clock, Ports.logger])
    .inSingletonScope();
});

/** What stands on the log that this process owns, whichever that is. */
export const logModule = new ContainerModule(({ bind }) => {
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
