import type { AgentFacts, Epoch, LinkMessage, ServerMessage } from '../../domain/link/model.js';
import type { NodeIdentity, PeerNode, StreamEnd } from '../../ports/driving/node-streams.js';
import type { Condition } from '../../ports/store/control-store.js';

/** The current stream of a node, for those who use it. Another stream is another session. */
export interface NodeSession {
  readonly node: PeerNode;
  readonly identity: NodeIdentity;
  /** Undefined for an older agent. */
  readonly agent: AgentFacts | undefined;
  readonly epoch: Epoch;
  /** Holds while no other stream has become the current one: whatever may only be done on the current stream is committed under it. */
  readonly fence: Condition;
  /** What was delivered on earlier streams than this is not remembered by the node (engine.md A12). */
  readonly forgottenBefore: Epoch;
  /** Aborted when the session is over. */
  readonly signal: AbortSignal;
  /** For how long nothing may be delivered, milliseconds from now: two older agents may be calling themselves this node. */
  holdMs(): number;
  /** In the order of the calls; resolves true when the transport has taken it, false when the session is over. */
  send(message: ServerMessage): Promise<boolean>;
  end(reason: StreamEnd): void;
}

/** A part that uses the streams of nodes. Called synchronously and in order: opened, received …, closed, opened … */
export interface NodeUser {
  opened(session: NodeSession): void;
  /** Every message but heartbeats. Returns whether it was this user's. */
  received(session: NodeSession, message: LinkMessage): boolean;
  closed(session: NodeSession): void;
}
