import type { CallOptions } from '../call-options.js';

/** Who runs this daemon as a service and outlives it. */
export interface ServiceManager {
  /** Whether `restart` could be carried out. @throws AgentError `service.unmanaged` with the reason */
  check(options: CallOptions): Promise<void>;

  /**
   * Resolves when the restart of this daemon is scheduled for `delaySeconds` from now, by something outside its own control group. While
   * one is scheduled, another call changes nothing. On abort it is scheduled or not.
   * @throws AgentError `service.unmanaged`, `service.failed`
   */
  restart(delaySeconds: number, options: CallOptions): Promise<void>;
}
