import type { SessionEnd, SessionTarget } from '../../domain/session/model.js';
import type { CallOptions } from '../call-options.js';

/** One open connection to a service. */
export interface ServiceSocket {
  /**
   * What the service says, in its order, one reader. It is read at the reader's pace: while nobody reads, the service is made to wait, and at
   * most one of its messages and 512 KiB are held here. Ends without an error when the connection is over.
   */
  readonly output: AsyncIterable<Uint8Array>;
  /** Resolves when the connection is over, whoever ended it; after `output` has been read to its end where the service ended it. */
  readonly ended: Promise<SessionEnd>;
  /** Bytes of `send` that the kernel has not taken. */
  readonly unsent: number;
  /** One text message, in the order of the calls. Nothing happens after the end. */
  send(text: string): void;
  /** At once, without waiting for the service; safe twice. */
  close(): void;
}

/** The way from a node to the services of its cluster. */
export interface ServiceDialer {
  /**
   * A WebSocket to `ws://<name>.<namespace>.svc.cluster.local:<port><path>`, and to nothing else: no redirect is followed. 10 s for name,
   * connection and handshake together. On abort nothing is left open.
   * @throws AgentError `session.unreachable`; on abort with the signal's reason
   */
  open(target: SessionTarget, options: CallOptions): Promise<ServiceSocket>;
}
