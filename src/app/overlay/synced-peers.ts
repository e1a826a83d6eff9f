import type { OverlayPeer, OverlaySet } from '../../domain/link/calls.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { PeerBook } from '../link/node-calls-service.js';
import type { FleetOverlay } from './fleet-overlay.js';
import type { PeerPushes } from './peer-pushes.js';

/** Answers nodes that ask for their peers. */
export class SyncedPeers implements PeerBook {
  readonly #overlay: FleetOverlay;
  readonly #pushes: PeerPushes;

  constructor(overlay: FleetOverlay, pushes: PeerPushes) {
    this.#overlay = overlay;
    this.#pushes = pushes;
  }

  /** @throws AgentError `overlay.no_address_left`, `store.*` */
  async sync(node: PeerNode, self: OverlayPeer | undefined, options: CallOptions): Promise<OverlaySet> {
    const set = await this.#overlay.sync(node, self, options);
    this.#pushes.given(node.identity.nid, set);
    return set;
  }
}
