import type { OwnedLog } from '../../ports/log/ordered-log.js';
import type { Subsystem } from '../agent/subsystem.js';

/** The log that this process holds itself: open while the agent runs. */
export class LogStoreSubsystem implements Subsystem {
  readonly name = 'log-store';
  readonly #log: OwnedLog;

  constructor(log: OwnedLog) {
    this.#log = log;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#log.open({ signal });
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#log.close();
  }
}
