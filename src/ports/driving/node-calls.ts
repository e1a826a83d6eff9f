import type { ControlPlaneNode, InstallProgress, NodelogEntry, OverlayPeer, OverlaySet } from '../../domain/link/calls.js';
import type { LinkMessage } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';
import type { PeerNode } from './node-streams.js';

/** What a node asks the control plane outside of its stream. Calls may come twice. Every failure is an AgentError. */
export interface NodeCalls {
  controlPlaneNodes(node: PeerNode, options: CallOptions): Promise<readonly ControlPlaneNode[]>;
  /** The peers that the node is to have; `self` is undefined where it does not say what it is. */
  manualSync(node: PeerNode, self: OverlayPeer | undefined, nodeIsReady: boolean, options: CallOptions): Promise<OverlaySet>;
  updateStatus(node: PeerNode, status: string, options: CallOptions): Promise<void>;
  addNodelog(node: PeerNode, entry: NodelogEntry, options: CallOptions): Promise<void>;
  installProgress(node: PeerNode, progress: InstallProgress, options: CallOptions): Promise<void>;
  /** A reply that came beside the stream, whole and with its digest checked. It is held when this resolves. */
  uploaded(node: PeerNode, reply: LinkMessage, options: CallOptions): Promise<void>;
}
