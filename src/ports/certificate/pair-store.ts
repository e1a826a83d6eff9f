import type { Validity } from '../../domain/certificate/validity.js';
import type { CallOptions } from '../call-options.js';
import type { ProblemSource } from '../node/problem-source.js';

/** What a node shows and trusts on the mutual channel. */
export interface Pair {
  /** PEM. */
  readonly certificate: string;
  /** PEM: PKCS#1, PKCS#8 or SEC 1. */
  readonly privateKey: string;
  /** PEM of the root that servers are judged by. */
  readonly ca: string;
}

export interface StoredPair extends Pair, Validity {
  /** Lower-case hex without leading zeros. */
  readonly serial: string;
}

export interface StoredPairs {
  /** The one in use: when that is damaged, the newest other one, and `problems` names it. */
  readonly current: StoredPair | undefined;
  /** Newer than the current one and not in use yet: it was kept before it was tried. */
  readonly staged: StoredPair | undefined;
}

/**
 * The node's certificates on disk. At each moment, also after a crash, there is a whole pair that belongs together. One user at a time.
 * `problems` is of the last `load` or `activate`.
 */
export interface PairStore extends ProblemSource {
  /**
   * Never writes to a pair; private keys that others may read are made private. Damaged pairs are passed over.
   * @throws AgentError `certificate.unusable` when nothing can be read
   */
  load(options: CallOptions): Promise<StoredPairs>;
  /**
   * Keeps a pair beside the current one; durable when it resolves. The same pair again changes nothing.
   * @throws AgentError `certificate.unusable` when certificate and key do not belong together or cannot be read, `certificate.not_written`
   */
  stage(pair: Pair, options: CallOptions): Promise<StoredPair>;
  /**
   * The kept pair with this serial is the current one from now on; durable when it resolves. The one before is kept for the way back,
   * all others are removed. Again with the same serial changes nothing.
   * @throws AgentError `certificate.not_written`
   */
  activate(serial: string, options: CallOptions): Promise<void>;
  /**
   * There is no pair any more when it resolves, nor any trace of one. A crash, or an abort, leaves some of them or none; again goes on.
   * @throws AgentError `certificate.not_written`
   */
  clear(options: CallOptions): Promise<void>;
}
