import { nodeKey } from '../../domain/certificate/records.js';
import { afterUse } from '../../domain/certificate/succession.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';
import type { EnrolmentView } from './enrolment-view.js';
import { RecordStore, writeNode, writeRevocation } from './record-store.js';

export interface FirstUseConfig {
  readonly store: ControlStore;
  readonly view: EnrolmentView;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Others write the same record now and then. */
const TRIES = 5;

/**
 * Notices when a node first calls with a certificate, which retires the one before. In the background: no call waits for the store, and
 * what could not be written is noticed again with the next call.
 */
export class FirstUse {
  readonly #config: FirstUseConfig;
  readonly #records: RecordStore;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #stopper = new AbortController();

  constructor(config: FirstUseConfig) {
    this.#config = config;
    this.#records = new RecordStore(config.store);
  }

  /** Cheap when it is no first use. */
  note(node: PeerNode): void {
    const { identity, serial } = node;
    if (this.#underWay.has(serial) || this.#stopper.signal.aborted || this.#isOld(node)) return;
    const work = this.#settle(node, { signal: this.#stopper.signal })
      .catch((error: unknown) => {
        if (this.#stopper.signal.aborted) return;
        this.#config.logger.warn('the first use of a certificate could not be noted; its next use will be', {
          nid: identity.nid,
          serial,
          error,
        });
      })
      .finally(() => this.#underWay.delete(serial));
    this.#underWay.set(serial, work);
  }

  /** What is being noted has been, or could not be. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  /** Safe twice; from then on nothing is noted. */
  async stop(): Promise<void> {
    this.#stopper.abort();
    await this.settled();
  }

  /** As far as this replica knows, which may lag behind: then the store is asked. */
  #isOld({ identity, serial }: PeerNode): boolean {
    const { view } = this.#config;
    const known = view.node(identity.nid);
    if (known?.registration !== identity.registration) return false;
    if (known.current.serial === serial) return known.current.firstUsed !== undefined;
    return view.find('serial', serial) !== undefined;
  }

  async #settle({ identity, serial }: PeerNode, options: CallOptions): Promise<void> {
    const { clock, store } = this.#config;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const stored = await this.#records.node(identity.nid, options);
      if (stored?.record.registration !== identity.registration) return;
      const change = afterUse(stored.record, serial, clock.now());
      if (change === undefined) return;
      const writes = [writeNode(change.record), ...change.revocations.map(writeRevocation)];
      const conditions = [{ key: nodeKey(identity.nid), version: stored.version }];
      if ((await store.commit(conditions, writes, options)) !== undefined) return;
    }
  }
}
