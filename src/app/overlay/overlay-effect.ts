import type { Answer } from '../../domain/instruction/model.js';
import type { OverlayPlanned } from '../../domain/overlay/plan.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { OverlayKeeper } from './overlay-keeper.js';

/** SET_VPN_PEERS: a whole set of peers. */
export class OverlayEffect {
  readonly #keeper: OverlayKeeper;
  readonly #endpoint: () => string;

  /** `endpoint`: the address under which others reach this node; empty behind NAT. */
  constructor(keeper: OverlayKeeper, endpoint: () => string) {
    this.#keeper = keeper;
    this.#endpoint = endpoint;
  }

  /** @throws AgentError `overlay.*`, `command.*` */
  async run({ wanted }: OverlayPlanned, options: CallOptions): Promise<Answer> {
    const { observed, failed } = await this.#keeper.inTurn((turn) => turn.apply(wanted), options);
    const nodePeer = {
      pubKey: observed.publicKey,
      endpointIp: this.#endpoint(),
      vpnIp: observed.link?.addresses[0]?.address ?? '',
    };
    const named = failed.map(({ publicKey, reason }) => ({ pubKey: publicKey, reason }));
    return { kind: 'json', type: 'NODE_VPN_PEER', value: { nodePeer, failed: named } };
  }
}
