import { AgentError } from '../../domain/kernel/errors.js';
import type { JournalFacts, Nid, RegistrationId } from '../../domain/link/model.js';
import {
  decodeStream,
  encodeStream,
  forgetfulStream,
  nextStream,
  type StreamClaim,
  type StreamRecord,
  streamKey,
} from '../../domain/link/stream-record.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Condition, ControlStore } from '../../ports/store/control-store.js';

/** Each lost race is another stream of the same node. */
const MOST_TRIES = 20;

export interface RaisedEpoch {
  readonly record: StreamRecord;
  /** Holds until the next stream of the registration. */
  readonly fence: Condition;
}

/** A record as it stands in the store; undefined and 0 where there is none. */
export interface KeptStream {
  readonly record: StreamRecord | undefined;
  readonly version: bigint;
}

/** Whose stream it is, and what is known of it. */
export interface RaisedOf {
  readonly nid: Nid;
  readonly registration: RegistrationId;
  /** What was read a moment ago, so that it need not be read again; it may be out of date. */
  readonly known: KeptStream | undefined;
  /** What its heartbeats have said last. */
  readonly heard: JournalFacts | undefined;
}

/** The epochs of all registrations, raised by compare-and-set (engine.md B2). */
export class StreamEpochs {
  readonly #store: ControlStore;

  constructor(store: ControlStore) {
    this.#store = store;
  }

  /** @throws AgentError `store.unavailable` */
  async read(nid: Nid, registration: RegistrationId, options: CallOptions): Promise<KeptStream> {
    const kept = await this.#store.get(streamKey(nid, registration), options);
    if (kept === undefined) return { record: undefined, version: 0n };
    return { record: decodeStream(kept.value), version: kept.version };
  }

  /**
   * Makes `claim` the current stream of the registration.
   * @throws AgentError `store.unavailable`
   */
  async raise({ nid, registration, known, heard }: RaisedOf, claim: StreamClaim, options: CallOptions): Promise<RaisedEpoch> {
    const key = streamKey(nid, registration);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const kept = (tries === 0 ? known : undefined) ?? (await this.read(nid, registration, options));
      const former = kept.record;
      const condition = { key, version: kept.version };
      // Written by a commit whose answer was lost.
      if (former?.stream === claim.stream) return { record: former, fence: condition };
      const record = nextStream(former, claim, heard);
      const version = await this.#commit(condition, encodeStream(record), options);
      if (version !== undefined) return { record, fence: { key, version } };
    }
    throw new AgentError('store.unavailable', { problem: `too many streams of node ${nid} at once` });
  }

  /** What was delivered up to this stream is not remembered by its node; the stream is to be ended. @throws AgentError `store.*` */
  async forgotten({ record, fence }: RaisedEpoch, options: CallOptions): Promise<void> {
    await this.#store.commit([fence], [{ key: fence.key, value: encodeStream(forgetfulStream(record)) }], options);
  }

  /** Undefined: look again. */
  async #commit(condition: Condition, value: string, options: CallOptions): Promise<bigint | undefined> {
    try {
      return await this.#store.commit([condition], [{ key: condition.key, value }], options);
    } catch (error) {
      if (error instanceof AgentError && error.code === 'store.outcome_unknown') return undefined;
      throw error;
    }
  }
}
