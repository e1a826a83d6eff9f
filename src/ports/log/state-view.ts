import type { Revision } from '../../domain/log/model.js';
import type { ClusterState, Touched } from '../../domain/resource/state.js';
import type { CallOptions } from '../call-options.js';

/** The state of the log as this process knows it. One writer folds it; everybody else reads. */
export interface StateView {
  /** Always the same object; it changes between two turns of the event loop, whole entries at a time. */
  readonly state: ClusterState;

  /** How long ago the view was last known to be current, milliseconds; `undefined` before it first was. */
  ageMs(): number | undefined;

  /**
   * Whether the view may be taken for the present state (engine.md J2): services with `onStale: refuse` take no new connection while it
   * may not.
   */
  fresh(): boolean;

  /** Resolves when the view holds the entry of `revision`; rejects on abort. */
  reached(revision: Revision, options: CallOptions): Promise<void>;

  /**
   * `listener` is called after every change with what it touched, synchronously; when `fresh` turns, with the services to which that
   * matters. Returns what undoes it.
   */
  onChange(listener: (touched: Touched) => void): () => void;
}
