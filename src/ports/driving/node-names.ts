import type { NodeName } from '../../domain/identity/model.js';
import type { CallOptions } from '../call-options.js';
import type { PeerNode } from './node-streams.js';

/** Under which name each node stands in resources: said by the node itself, once. */
export interface NodeNames {
  /**
   * The first time, the name is the node's from then on, for all replicas; later only the same one is taken.
   * @throws AgentError `log.denied` when the node has another name, or another node this one; `store.unavailable`, `store.outcome_unknown`
   */
  bind(node: PeerNode, name: NodeName, options: CallOptions): Promise<void>;

  /** Of a node that was bound since this process started. */
  nameOf(node: PeerNode): NodeName | undefined;
}
