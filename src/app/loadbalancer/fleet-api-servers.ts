import { formatHostPort, ipAddress } from '../../domain/kernel/network.js';
import type { ControlPlaneNode } from '../../domain/link/calls.js';
import type { Aid, LinkMessage } from '../../domain/link/model.js';
import { payloadOf } from '../../domain/link/payload.js';
import { API_SERVER_PORT } from '../../domain/loadbalancer/model.js';
import type { Clock } from '../../ports/clock.js';
import type { NodeSession, NodeUser } from '../link/node-session.js';
import type { PresenceBoard } from '../link/presence-board.js';
import type { FleetOverlay } from '../overlay/fleet-overlay.js';
import { LIST_TYPE } from './balancer-subsystem.js';

/** 10,000 nodes ask 170 times a second, and looking at all of them takes milliseconds. */
const FRESH_MS = 1_000;

export interface FleetApiServersParts {
  readonly presence: Pick<PresenceBoard, 'nodes'>;
  readonly overlay: Pick<FleetOverlay, 'setOf'>;
  readonly clock: Clock;
}

/**
 * The API servers of each account: its nodes that say they are control planes of Kubernetes, whether they are online or not, as each node
 * finds out by itself which of them answers. Older agents ask by a call, others on their stream.
 */
export class FleetApiServers implements NodeUser {
  readonly #parts: FleetApiServersParts;
  #known: { readonly at: number; readonly lists: ReadonlyMap<Aid, readonly ControlPlaneNode[]> } | undefined;

  constructor(parts: FleetApiServersParts) {
    this.#parts = parts;
  }

  /** In the order of the nodes' ids. At most a second old. */
  of(aid: Aid): readonly ControlPlaneNode[] {
    const now = this.#parts.clock.monotonic();
    if (this.#known === undefined || now - this.#known.at >= FRESH_MS) this.#known = { at: now, lists: this.#lists() };
    return this.#known.lists.get(aid) ?? [];
  }

  opened(): void {}

  received(session: NodeSession, { type, tag }: LinkMessage): boolean {
    if (type !== LIST_TYPE) return false;
    const endpoints = this.of(session.identity.aid).map(({ kubeEndpoint }) => kubeEndpoint);
    void session.send({ type: LIST_TYPE, tag, jsonB64: payloadOf(endpoints) });
    return true;
  }

  closed(): void {}

  #lists(): ReadonlyMap<Aid, readonly ControlPlaneNode[]> {
    const { presence, overlay } = this.#parts;
    const lists = new Map<Aid, ControlPlaneNode[]>();
    for (const { nid, controlPlane } of presence.nodes()) {
      if (controlPlane === undefined) continue;
      const [vpnIp = ''] = overlay.setOf(nid).address.split('/');
      const address = ipAddress(vpnIp) ?? ipAddress(controlPlane.address);
      if (address === undefined) continue;
      const kubeEndpoint = `https://${formatHostPort({ host: address, port: API_SERVER_PORT })}`;
      lists.set(controlPlane.aid, [...(lists.get(controlPlane.aid) ?? []), { vpnIp, kubeEndpoint }]);
    }
    return lists;
  }
}
