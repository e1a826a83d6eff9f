import type { Aid, Nid } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';

export interface TokenCall {
  /** Of the nodes that will register with it. */
  readonly aid: Aid;
  /** How long it can be used, milliseconds. */
  readonly ttlMs: number;
  /** The node that a machine which registers with it takes the place of; undefined: it becomes a new one. */
  readonly replace: Nid | undefined;
}

/** What is kept of a token. The token itself is not. */
export interface TokenFacts {
  readonly id: string;
  readonly aid: Aid;
  readonly replace: Nid | undefined;
  /** Wall clock, milliseconds. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The node that used it. */
  readonly usedBy: Nid | undefined;
}

/** The enrolment tokens, for those who operate the control plane. */
export interface Tokens {
  /**
   * `token` is shown once and is nowhere else.
   * @throws AgentError `fleet.unknown_node` when `replace` names none, `store.unavailable`, `store.outcome_unknown`
   */
  create(call: TokenCall, options: CallOptions): Promise<{ readonly token: string; readonly facts: TokenFacts }>;
  /** Those that can be used, were used or have run out lately; sorted by the time of making. @throws AgentError `store.unavailable` */
  list(options: CallOptions): Promise<readonly TokenFacts[]>;
  /** It cannot be used any more. False when there is none with this id. @throws AgentError `store.unavailable`, `store.outcome_unknown` */
  revoke(id: string, options: CallOptions): Promise<boolean>;
}
