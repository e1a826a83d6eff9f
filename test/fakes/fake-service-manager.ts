import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { ServiceManager } from '../../src/ports/instruction/service-manager.js';

/** Schedules restarts that never come. */
export class FakeServiceManager implements ServiceManager {
  /** Seconds of the restart that is scheduled. */
  scheduled: number | undefined;
  #unmanaged = false;

  /** From now on nobody runs this daemon as a service. */
  remove(): void {
    this.#unmanaged = true;
  }

  async check({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#unmanaged) throw new AgentError('service.unmanaged', { problem: 'systemd does not run here' });
  }

  async restart(delaySeconds: number, options: CallOptions): Promise<void> {
    await this.check(options);
    this.scheduled ??= delaySeconds;
  }
}
