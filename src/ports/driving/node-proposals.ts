import type { Proposal, ProposeResult } from '../../domain/log/model.js';
import type { CallOptions } from '../call-options.js';
import type { PeerNode } from './node-streams.js';

/** What nodes write into the log. */
export interface NodeProposals {
  /**
   * As `OrderedLog.propose`, of what the node may write and within its limits; request ids of two nodes never meet.
   * @throws AgentError `log.denied`, `log.too_many` (proposals in a second, or objects), `log.too_large`, and as `OrderedLog.propose`
   */
  propose(node: PeerNode, proposal: Proposal, options: CallOptions): Promise<ProposeResult>;
}
