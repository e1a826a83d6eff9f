import type { Nid } from '../../domain/link/model.js';
import type { SessionEnd, SessionTarget, TerminalSize } from '../../domain/session/model.js';
import type { CallOptions } from '../call-options.js';

/** What whoever has a session says in it. */
export type SessionInput =
  | { readonly what: 'data'; readonly bytes: Uint8Array }
  | { readonly what: 'size'; readonly size: TerminalSize };

/** Whoever has a session. */
export interface SessionCaller {
  /** Read from the opening on, at the pace of the node's stream. Its end says that there is nothing more to say, and ends nothing. */
  readonly input: AsyncIterable<SessionInput>;
  /** Once, before any output. */
  opened(): void;
  /** In order; the next comes when it has resolved. */
  output(bytes: Uint8Array): Promise<void>;
}

/** Sessions with services in the clusters of nodes, for those who operate them. */
export interface RemoteSessions {
  /**
   * One session, until it is over; resolves with how it ended, after all its output. On abort it is closed, and resolves.
   * @throws AgentError `fleet.unknown_node`, `session.not_connected`, `session.elsewhere` when another replica has the node's stream,
   * `session.unreachable` when the node says nothing within 20 s, `store.unavailable`
   */
  open(nid: Nid, target: SessionTarget, caller: SessionCaller, options: CallOptions): Promise<SessionEnd>;
}
