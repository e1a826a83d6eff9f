import { certificateKey, type NodeRecord, nodeKey, nodePrefix } from '../../domain/certificate/records.js';
import type { Revocation } from '../../domain/certificate/revocation.js';
import { decodeNode } from '../../domain/certificate/schema.js';
import { registrationEnd } from '../../domain/certificate/succession.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { RegisteredNode, Registrations } from '../../ports/driving/registrations.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import { RecordStore, writeRevocation } from './record-store.js';

const TRIES = 5;

/** The nodes as enrolment knows them, and the end of their certificates. */
export class RegistrationService implements Registrations {
  readonly #store: ControlStore;
  readonly #clock: Clock;
  readonly #records: RecordStore;

  constructor({ store, clock }: { readonly store: ControlStore; readonly clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
    this.#records = new RecordStore(store);
  }

  async get(nid: Nid, options: CallOptions): Promise<RegisteredNode | undefined> {
    const stored = await this.#records.node(nid, options);
    return stored === undefined ? undefined : nodeOf(stored.record);
  }

  async list(options: CallOptions): Promise<readonly RegisteredNode[]> {
    const stored = await this.#store.list(nodePrefix, options);
    return stored.map(({ key, value }) => nodeOf(decodeNode(key, value)));
  }

  async remove(nid: Nid, options: CallOptions): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const stored = await this.#records.node(nid, options);
      if (stored === undefined) return false;
      const { record, version } = stored;
      const ended = registrationEnd(record, 'the node was removed', this.#clock.now());
      const serials = [record.current, record.pending].flatMap((each) => (each === undefined ? [] : [each.serial]));
      const writes = [
        { key: nodeKey(nid), value: null },
        ...serials.map((serial) => ({ key: certificateKey(serial), value: null })),
        writeRevocation(ended),
      ];
      if ((await this.#store.commit([{ key: nodeKey(nid), version }], writes, options)) !== undefined) return true;
    }
    throw new AgentError('store.unavailable', { problem: `others keep changing node ${nid}` });
  }

  async revokeCertificate(serial: string, reason: string, options: CallOptions): Promise<boolean> {
    const [ofNode, ofAdmin] = await Promise.all([
      this.#records.certificate(serial, options),
      this.#records.admin(serial, options),
    ]);
    if (ofNode === undefined && ofAdmin === undefined) return false;
    await this.revoke({ of: 'serial', id: serial }, reason, options);
    return true;
  }

  /**
   * From now on all certificates of a node, a registration's, or the one with this serial are refused, on every replica, and streams
   * that were opened with them end. Nothing takes it back but another registration of the node with a token that replaces it.
   * @throws AgentError `store.unavailable`, `store.outcome_unknown`
   */
  async revoke({ of, id }: Pick<Revocation, 'of' | 'id'>, reason: string, options: CallOptions): Promise<void> {
    const from = this.#clock.now();
    // The longest that a certificate of a node or of a person lives, and some days.
    const until = from + 400 * 24 * 60 * 60_000;
    await this.#store.commit([], [writeRevocation({ of, id, from, kind: 'revoked', reason, until })], options);
  }
}

function nodeOf({ nid, aid, registration, os, registered, current: { serial } }: NodeRecord): RegisteredNode {
  return { nid, aid, registration, os, registeredAt: registered, serial };
}
