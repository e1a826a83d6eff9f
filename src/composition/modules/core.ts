import { ContainerModule } from 'inversify';
import { SystemClock } from '../../adapters/clock/system-clock.js';
import { ExecaCommandRunner } from '../../adapters/command/execa-command-runner.js';
import { MemoryOutbox } from '../../adapters/outbox/memory-outbox.js';
import { Agent } from '../../app/agent/agent.js';
import type { Facts } from '../facts.js';
import { Ports, Root } from '../tokens.js';

/** What every daemon is made around. */
export const coreModule = new ContainerModule(({ bind }) => {
  bind(Ports.clock).toConstantValue(new SystemClock({ unref: true }));
  bind(Ports.commands).toConstantValue(new ExecaCommandRunner());
  bind(Ports.outbox)
    .toResolvedValue(({ config }: Facts) => new MemoryOutbox(config.outboxCapacity), [Root.facts])
    .inSingletonScope();
  bind(Root.agent)
    .toResolvedValue(
      ({ identity, mode, config }, orderedLog, logger, outbox, clock) =>
        new Agent({ identity, orderedLog, mode, logger, outbox: () => outbox, readyTimeoutMs: config.readyTimeoutMs, clock }),
      [Root.facts, Ports.log, Ports.logger, Ports.outbox, Ports.clock],
    )
    .inSingletonScope();
});
