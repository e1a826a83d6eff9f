import type { InstallCommand } from '../../domain/install/model.js';
import type { ControlPlaneNode, NodelogEntry, OverlayPeer, OverlaySet } from '../../domain/link/calls.js';
import type { LinkMessage } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';
import type { IssuedPair } from '../driving/enrolment.js';

/**
 * What the agent asks its control plane outside of the stream, each call on its own and within 30 s. Every call may be repeated.
 * @throws AgentError `link.unreachable`, `link.timed_out`, `link.refused`, `link.too_large`, `certificate.*`; on abort with its reason
 */
export interface NodewardCalls {
  controlPlaneNodes(options: CallOptions): Promise<readonly ControlPlaneNode[]>;
  /** Tells what this node is in the overlay, and gets the peers that it is to have. */
  manualSync(self: OverlayPeer, nodeIsReady: boolean, options: CallOptions): Promise<OverlaySet>;
  /** What this machine is to run to become what it is to be; `link.refused` with the server's words where there is nothing yet. */
  installCommands(options: CallOptions): Promise<readonly InstallCommand[]>;
  updateStatus(status: string, options: CallOptions): Promise<void>;
  addNodelog(entry: NodelogEntry, options: CallOptions): Promise<void>;
  /** A new certificate for the DER request `csr`; a server that knows none makes the key itself. */
  regenerateCertificate(csr: Uint8Array, options: CallOptions): Promise<IssuedPair>;
  /** The body of a reply that is too large for the stream; only to servers with capability `result-upload`. The server holds it at the end. */
  uploadReply(reply: LinkMessage, options: CallOptions): Promise<void>;
}
