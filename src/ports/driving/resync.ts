import type { Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../call-options.js';

export type ResyncOutcome =
  | { readonly outcome: 'applied'; readonly revision: Revision }
  /** The new state is held back, and why; the former one goes on serving. */
  | { readonly outcome: 'held'; readonly reason: string };

/** The node's view of the log, for those who operate it. */
export interface Resync {
  /**
   * Takes the whole state from the control plane anew. With `accept` it is taken over whatever it removes, and one that is held back
   * already is taken over at once, without asking again. Waits for the control plane until abort.
   */
  resync(call: { readonly accept: boolean }, options: CallOptions): Promise<ResyncOutcome>;
}
