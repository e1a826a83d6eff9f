import type { ListenerId } from '../../domain/dataplane/model.js';
import type { Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../call-options.js';

/** How a service port stands on this node. */
export type ListenerState =
  | { readonly state: 'listening'; readonly port: number }
  | { readonly state: 'pending' }
  /** It listens on the nodes: this is a control plane. */
  | { readonly state: 'elsewhere' }
  | { readonly state: 'failed'; readonly reason: string; readonly remedy: string; readonly since: number };

/** What the data plane of this node has made of the log. */
export interface ListenerStatus {
  stateOf(id: ListenerId): ListenerState;
  /** Those that failed, by id. */
  failed(): ReadonlyMap<ListenerId, Extract<ListenerState, { state: 'failed' }>>;
  /** Resolves when every listener of the view at `revision` was applied, well or not; rejects on abort. */
  settled(revision: Revision, options: CallOptions): Promise<void>;
}
