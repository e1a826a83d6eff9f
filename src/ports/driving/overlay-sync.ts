import type { PeerFailure } from '../../domain/overlay/model.js';
import type { CallOptions } from '../call-options.js';

export interface SyncedOverlay {
  /** Of this node; empty where the control plane has no overlay. */
  readonly address: string;
  /** Those that are as they were declared. */
  readonly peers: number;
  readonly failed: readonly PeerFailure[];
}

/** The overlay, for those who operate the node. */
export interface OverlaySync {
  /** Asks the control plane for the peers now. @throws AgentError `overlay.*`, `link.*`, `command.*` */
  sync(options: CallOptions): Promise<SyncedOverlay>;
}
