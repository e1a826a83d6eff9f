import type { AgentFacts, LinkMessage, ServerFacts, ServerMessage } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';

/** Where a server is. */
export interface LinkAddress {
  readonly host: string;
  readonly port: number;
}

/** Why a stream is over. */
export interface LinkEnd {
  /** `stream`: the server ended it and the connection lives. `connection`: it died or could not be made. `closed`: by us. */
  readonly what: 'closed' | 'stream' | 'connection';
  /** Of the error, `link.*` or `certificate.*`; undefined after a good end. */
  readonly error: Error | undefined;
  /** When the server wants us back, milliseconds (`holdfast-retry-ms` of a planned stop). */
  readonly retryMs: number | undefined;
}

export interface SendOptions extends CallOptions {
  /** It gives way: it is sent when nothing else waits, in the order of the calls that say so. */
  readonly behind?: boolean;
}

/** One open `NodeAgentStream`. Messages of it are its own: nothing of an older stream comes out of a newer one. */
export interface LinkStream {
  /** Of the response headers; undefined for a server that sends none before its first message. */
  readonly server: Promise<ServerFacts | undefined>;
  /** Each message once, in order, one reader. A malformed one is dropped and counted. Ends without an error; `ended` says why. */
  readonly messages: AsyncIterable<ServerMessage>;
  readonly ended: Promise<LinkEnd>;
  /**
   * In the order of the calls. Resolves when the transport has taken it: true, or false when the stream has ended before. On abort it was
   * sent or not.
   * @throws AgentError `link.too_large` for more than 12 MiB, which is not sent
   */
  send(message: LinkMessage, options: SendOptions): Promise<boolean>;
  /** Wall clock difference server - us, milliseconds, from the answer's `date`; undefined when it was not said. */
  readonly clockSkewMs: number | undefined;
  /** Milliseconds on the monotonic clock when the last byte came in, of whatever kind. */
  lastByteAt(): number;
  /** Local address of the connection, without a port; empty before there is one. */
  localAddress(): string;
  /** Cancelled at once; safe twice. */
  close(): void;
}

/** The agent's way to its control plane over mutual TLS. One connection is kept per address and certificate. */
export interface ControlLink {
  /**
   * Resolves when the call is on its way, before anything came back. 10 s for the connection.
   * @throws AgentError `link.unreachable`, `link.refused`, `certificate.*` with the cause named
   */
  open(address: LinkAddress, facts: AgentFacts, options: CallOptions): Promise<LinkStream>;

  /** From the next `open` on the pair on disk is read again, over a connection of its own. */
  reloadCertificate(): void;

  /** Every connection is closed. Safe twice. */
  close(): Promise<void>;
}
