import type { UnitState } from '../../domain/service/model.js';
import type { CallOptions } from '../call-options.js';

/** Services of this machine that are not this daemon. */
export interface Units {
  /** As it is now; one that is not installed is no error. @throws AgentError `service.unmanaged`: nobody runs services here */
  state(unit: string, options: CallOptions): Promise<UnitState>;

  /**
   * Resolves when it was stopped, if it ran, and started; a limit on starts does not hold it up. After an abort it is restarted or not.
   * @throws AgentError `service.failed` with what its manager says, also when it takes longer than 20 s
   */
  restart(unit: string, options: CallOptions): Promise<void>;

  /**
   * Resolves when a unit that runs was told to read its files again, and its own check of them passed; it may still be reading. After an
   * abort it was told or not.
   * @throws AgentError `service.failed` as `restart`, also for one that does not run
   */
  reload(unit: string, options: CallOptions): Promise<void>;
}
