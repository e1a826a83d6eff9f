import type { LinkMessage, ServerFacts, ServerMessage } from '../../domain/link/model.js';

/** The current stream, for those who use it. Another stream is another session. */
export interface LinkSession {
  /** Undefined for an older server, which is known by its first message. */
  readonly server: ServerFacts | undefined;
  /** Local address of the connection, without a port; empty where that is not known. */
  readonly localAddress: string;
  /** In the order of the calls; resolves true when the transport has taken it, false when the session is over. */
  send(message: LinkMessage): Promise<boolean>;
  /** It gives way to everything that `send` is given; in the order of its own calls. As `send` otherwise. */
  sendBehind(message: LinkMessage): Promise<boolean>;
  /** Aborted when the session is over. */
  readonly signal: AbortSignal;
}

/** A heartbeat and its answer. */
export interface AnsweredHeartbeat {
  /** Boot-time clock, milliseconds. */
  readonly sentAt: number;
  readonly answer: ServerMessage;
}

/** A part that uses the link. All members are called synchronously and in order: opened, received …, closed, opened … */
export interface LinkUser {
  /** The server is known and the first heartbeat has been answered: results may be offered. */
  opened(session: LinkSession): void;
  /** Every message that no heartbeat or question of our own was waiting for. Returns whether it was this user's. */
  received(session: LinkSession, message: ServerMessage): boolean;
  /** Each heartbeat that was answered, the first one after `opened`. */
  answered?(session: LinkSession, beat: AnsweredHeartbeat): void;
  closed(session: LinkSession): void;
}
