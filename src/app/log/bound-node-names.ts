import { nodeKey } from '../../domain/certificate/records.js';
import type { NodeName } from '../../domain/identity/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { NodeNames } from '../../ports/driving/node-names.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { ControlStore } from '../../ports/store/control-store.js';

/** Somebody else may bind in the same moment; then it is looked at again. */
const MOST_ATTEMPTS = 3;
const NAME_OF = 'log/name-of/';

/** Names in the control plane's store, both ways, so that neither a node nor a name is bound twice (engine.md B4). */
export class BoundNodeNames implements NodeNames {
  readonly #store: ControlStore;
  readonly #names = new Map<Nid, NodeName>();

  constructor(store: ControlStore) {
    this.#store = store;
  }

  async bind({ identity: { nid } }: PeerNode, name: NodeName, options: CallOptions): Promise<void> {
    const known = this.#names.get(nid);
    if (known !== undefined && known !== name) throw otherName(nid, known, name);
    for (let attempt = 0; this.#names.get(nid) !== name; attempt += 1) {
      if (attempt === MOST_ATTEMPTS)
        throw new AgentError('store.unavailable', { problem: 'names change faster than they can be bound' });
      if (await this.#bound(nid, name, options)) this.#names.set(nid, name);
    }
  }

  /** Every name that is bound, also those that other replicas have bound. */
  async all(options: CallOptions): Promise<ReadonlyMap<Nid, NodeName>> {
    const held = await this.#store.list(NAME_OF, options);
    return new Map(held.map(({ key, value }) => [key.slice(NAME_OF.length) as Nid, value as NodeName]));
  }

  nameOf({ identity }: PeerNode): NodeName | undefined {
    return this.#names.get(identity.nid);
  }

  /** Whether it is so now. */
  async #bound(nid: Nid, name: NodeName, options: CallOptions): Promise<boolean> {
    const [nameKey, nidKey] = [`${NAME_OF}${nid}`, `log/node-of/${name}`];
    const [own, holder] = await Promise.all([this.#store.get(nameKey, options), this.#store.get(nidKey, options)]);
    if (own !== undefined && own.value !== name) throw otherName(nid, own.value, name);
    // A name outlives its node no longer than that one's registration.
    const gone = holder !== undefined && holder.value !== nid && (await this.#isGone(holder.value as Nid, options));
    if (holder !== undefined && holder.value !== nid && !gone) {
      throw denied(
        `DUPLICATE_NODE: ${name} is the node ${holder.value} already; give ${nid} a nodeName of its own, without the node-identity.json that it has, or remove ${holder.value}`,
      );
    }
    if (own !== undefined && holder?.value === nid) return true;
    const conditions = [
      { key: nameKey, version: own?.version ?? 0n },
      { key: nidKey, version: holder?.version ?? 0n },
    ];
    const writes = [
      { key: nameKey, value: name },
      { key: nidKey, value: nid },
    ];
    return (await this.#store.commit(conditions, writes, options)) !== undefined;
  }

  async #isGone(nid: Nid, options: CallOptions): Promise<boolean> {
    return (await this.#store.get(nodeKey(nid), options)) === undefined;
  }
}

/** As a machine does that took the place of another one under a name of its own. */
function otherName(nid: Nid, known: string, name: NodeName): AgentError {
  const remedy = `remove the node-identity.json of this machine and start its agent with nodeName ${known}`;
  return denied(`the node ${nid} is ${known}, not ${name}`, remedy);
}

function denied(problem: string, remedy = 'give the node a name of its own, or remove the node that has the name'): AgentError {
  return new AgentError('log.denied', { problem, remedy });
}
