import { tag as asTag } from '../../domain/instruction/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { LinkMessage, Nid } from '../../domain/link/model.js';
import { nodeFrame } from '../../domain/session/frames.js';
import { DIAL_MS, type SessionEnd, type SessionId, type SessionTarget } from '../../domain/session/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Registrations } from '../../ports/driving/registrations.js';
import type { RemoteSessions, SessionCaller } from '../../ports/driving/remote-sessions.js';
import type { NodeSession, NodeUser } from '../link/node-session.js';
import type { NodeSessions } from '../link/node-sessions.js';
import type { PresenceBoard } from '../link/presence-board.js';
import { LINK_LOST, RelayedSession } from './relayed-session.js';

/** A node dials for 10 s; one that does not know sessions says nothing at all, or `ERROR`. */
export const ANSWER_MS = 2 * DIAL_MS;

export interface SessionRelayParts {
  /** Id of this replica. */
  readonly server: string;
  readonly registrations: Registrations;
  readonly presence: PresenceBoard;
  /** Made after this, since its streams speak to this. */
  readonly nodes: () => Pick<NodeSessions, 'get'>;
  readonly newId: () => string;
  readonly clock: Clock;
}

/** Passes sessions on between callers of this server and the nodes whose streams it has. */
export class SessionRelay implements NodeUser, RemoteSessions {
  readonly #parts: SessionRelayParts;
  readonly #relayed = new Map<SessionId, RelayedSession>();

  constructor(parts: SessionRelayParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#relayed.size;
  }

  async open(nid: Nid, target: SessionTarget, caller: SessionCaller, { signal }: CallOptions): Promise<SessionEnd> {
    const node = await this.#nodeOf(nid, { signal });
    const id = asTag(this.#parts.newId());
    if (id === undefined) throw new AgentError('session.invalid', { problem: 'the id of a session is no tag' });
    const session = new RelayedSession(id, node, caller);
    const onAbort = () => session.close();
    this.#relayed.set(id, session);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      if (signal.aborted) session.close();
      else await this.#open(session, target);
      return await session.run();
    } finally {
      signal.removeEventListener('abort', onAbort);
      // Where its caller failed.
      session.close();
      this.#relayed.delete(id);
    }
  }

  opened(): void {}

  received(node: NodeSession, message: LinkMessage): boolean {
    const id = asTag(message.tag);
    const session = id === undefined ? undefined : this.#relayed.get(id);
    const frame = nodeFrame(message);
    // What comes after its end, or from a node that it is not of, is still nobody else's.
    if (frame === undefined || session?.node !== node) return message.type.startsWith('STREAM_');
    session.received(frame);
    return true;
  }

  closed(node: NodeSession): void {
    for (const session of this.#relayed.values()) if (session.node === node) session.finish(LINK_LOST);
  }

  /** @throws AgentError `session.unreachable` */
  async #open(session: RelayedSession, target: SessionTarget): Promise<void> {
    const timer = new AbortController();
    const late = this.#parts.clock.sleep(ANSWER_MS, { signal: timer.signal }).then(
      () => true,
      () => false,
    );
    await session.ask(target);
    const isLate = await Promise.race([late, session.answered.then(() => false)]);
    timer.abort();
    if (!isLate) return;
    const { nid } = session.node.identity;
    const problem = `node ${nid} has not answered within ${ANSWER_MS / 1_000} s; its agent may be one without sessions`;
    throw new AgentError('session.unreachable', { problem });
  }

  /** @throws AgentError `fleet.unknown_node`, `session.elsewhere`, `session.not_connected` */
  async #nodeOf(nid: Nid, options: CallOptions): Promise<NodeSession> {
    const { nodes, registrations, presence, server } = this.#parts;
    const node = nodes().get(nid);
    if (node !== undefined && !node.signal.aborted) return node;
    if ((await registrations.get(nid, options)) === undefined)
      throw new AgentError('fleet.unknown_node', { problem: `there is no node ${nid}` });
    const seen = presence.get(nid);
    if (seen?.connected === true && seen.state === 'online' && seen.server !== server)
      throw new AgentError('session.elsewhere', { problem: `the stream of node ${nid} is at replica ${seen.server}` });
    throw new AgentError('session.not_connected', { problem: `node ${nid} is not connected` });
  }
}
