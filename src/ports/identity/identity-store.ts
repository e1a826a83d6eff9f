import type { Identity } from '../../domain/identity/model.js';
import type { CallOptions } from '../call-options.js';

/** Where the node's identity stands. It is written once in the life of a node. */
export interface IdentityStore {
  /**
   * `undefined` when this node has none yet. Changes nothing.
   * @throws AgentError `identity.malformed`, `identity.unreadable`
   */
  load(options: CallOptions): Promise<Identity | undefined>;

  /**
   * Writes `identity` unless there is one, and resolves with the one that is there then: of several callers at once all get the same.
   * Durable when it resolves; on abort or a crash it is there whole or not at all. What is there is never overwritten.
   * @throws AgentError `identity.not_written`, and what `load` throws about the one that is there
   */
  create(identity: Identity, options: CallOptions): Promise<Identity>;
}
