import { judgeRenewal } from '../../domain/certificate/renewal.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallerFacts, Nid } from '../../domain/link/model.js';
import { decodeStream, type StreamRecord, streamKey } from '../../domain/link/stream-record.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { PeerNode } from '../../ports/driving/node-streams.js';
import type { Logger } from '../../ports/logger.js';
import type { ControlStore } from '../../ports/store/control-store.js';

/** Another boot or other hardware than that of the current stream has asked for the node's next certificate. */
export interface ForeignRenewal {
  readonly what: 'foreign_renewal';
  readonly nid: Nid;
  /** Who asked, and who has the stream. */
  readonly address: string;
  readonly current: string;
  /** An older agent says nothing of itself: it is let in, as it may be in its own right. */
  readonly refused: boolean;
}

export interface RenewalGuardConfig {
  readonly store: ControlStore;
  readonly logger: Logger;
  readonly onEvent: (event: ForeignRenewal) => void;
}

/** Keeps a copy of a node from getting the certificate that follows (engine.md F5). */
export class RenewalGuard {
  readonly #config: RenewalGuardConfig;

  constructor(config: RenewalGuardConfig) {
    this.#config = config;
  }

  /** @throws AgentError `certificate.not_current`, `store.unavailable` */
  async check({ identity, address }: PeerNode, caller: CallerFacts | undefined, options: CallOptions): Promise<void> {
    const { logger, onEvent, store } = this.#config;
    const { nid, registration } = identity;
    const stored = await store.get(streamKey(nid, registration), options);
    const stream: StreamRecord | undefined = stored === undefined ? undefined : decodeStream(stored.value);
    if (stream === undefined || judgeRenewal(stream.agent, caller) === 'current') return;
    const refused = caller !== undefined;
    logger.warn('a certificate was asked for by another machine than has the stream', {
      ...{ nid, address, current: stream.address, refused },
    });
    onEvent({ what: 'foreign_renewal', nid, address, current: stream.address, refused });
    if (!refused) return;
    const problem = `node ${nid} has its stream at ${stream.address}, from another machine or another start of it`;
    throw new AgentError('certificate.not_current', { problem });
  }
}
