import type { MachineInfo } from '../../domain/node/model.js';
import type { CallOptions } from '../call-options.js';

/** Looks at the machine. */
export interface NodeProbe {
  /**
   * What can be found within some seconds: what hangs, or says too much, is not probed and therefore absent. Any number at once; rejects
   * on abort only.
   */
  look(options: CallOptions): Promise<MachineInfo>;
}
