import type { ListenerId } from '../../domain/dataplane/model.js';
import type { CallOptions } from '../call-options.js';

/** Which port a listener had that could not have its own, across restarts. A convenience: losing it costs a changed port. */
export interface ListenPortMemory {
  /** Empty when there is none, or what is there cannot be read. */
  load(options: CallOptions): Promise<ReadonlyMap<ListenerId, number>>;
  /** Replaces all of it. */
  save(ports: ReadonlyMap<ListenerId, number>, options: CallOptions): Promise<void>;
}
