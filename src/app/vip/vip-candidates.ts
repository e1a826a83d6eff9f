import type { Aid, Nid } from '../../domain/link/model.js';
import type { NodeState } from '../../domain/link/presence.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Registrations } from '../../ports/driving/registrations.js';
import type { PresenceBoard, SeenNode } from '../link/presence-board.js';

/** In `vip.candidates`: every control plane that says that it is ready. */
export const CONTROL_PLANES = 'control-planes';

export interface VipCandidatesParts {
  /** Ids of nodes, or `control-planes`; none: there is no virtual IP. */
  readonly candidates: readonly string[];
  readonly presence: Pick<PresenceBoard, 'get' | 'nodes'>;
  readonly registrations: Pick<Registrations, 'get'>;
  /** Whether instructions are held back from it: it would not hear of the address. */
  readonly isCordoned: (nid: Nid) => boolean;
}

/** Which nodes may have the virtual IP of their account. */
export class VipCandidates {
  readonly #parts: VipCandidatesParts;
  readonly #accounts = new Map<Nid, Aid>();

  constructor(parts: VipCandidatesParts) {
    this.#parts = parts;
  }

  /** Whether any node may ever have one. */
  get isOn(): boolean {
    return this.#parts.candidates.length > 0;
  }

  /** Sorted, by account. @throws AgentError `store.unavailable` */
  async byAccount(options: CallOptions): Promise<ReadonlyMap<Aid, readonly Nid[]>> {
    const found = new Map<Aid, readonly Nid[]>();
    for (const nid of [...this.#fit()].sort()) {
      const aid = await this.accountOf(nid, options);
      if (aid !== undefined) found.set(aid, [...(found.get(aid) ?? []), nid]);
    }
    return found;
  }

  /** Undefined for a node that is not registered. @throws AgentError `store.unavailable` */
  async accountOf(nid: Nid, options: CallOptions): Promise<Aid | undefined> {
    const known = this.#accounts.get(nid);
    if (known !== undefined) return known;
    const aid = (await this.#parts.registrations.get(nid, options))?.aid;
    if (aid !== undefined) this.#accounts.set(nid, aid);
    return aid;
  }

  stateOf(nid: Nid): NodeState | undefined {
    return this.#parts.presence.get(nid)?.state;
  }

  #fit(): ReadonlySet<Nid> {
    const { candidates, presence, isCordoned } = this.#parts;
    const named = candidates.flatMap((name) => presence.get(name as Nid) ?? []);
    const fit = candidates.includes(CONTROL_PLANES) ? [...named, ...presence.nodes().filter(isReadyControlPlane)] : named;
    return new Set(fit.filter(({ nid, state }) => state === 'online' && !isCordoned(nid)).map(({ nid }) => nid));
  }
}

function isReadyControlPlane({ controlPlane, status }: SeenNode): boolean {
  return controlPlane !== undefined && status === 'ready';
}
