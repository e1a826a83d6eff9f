import type { CertificateIdentity } from '../../domain/certificate/model.js';
import type { AgentFacts, LinkMessage, ServerFacts, ServerMessage } from '../../domain/link/model.js';

export type NodeIdentity = Extract<CertificateIdentity, { role: 'node' }>;

/** A node whose certificate was judged good for this call. */
export interface PeerNode {
  readonly identity: NodeIdentity;
  readonly serial: string;
  /** Wall clock, milliseconds: streams end then. */
  readonly notAfter: number;
  /** `address:port` that it calls from. */
  readonly address: string;
}

/** Why a stream is ended from our side; the adapter turns it into a gRPC status and trailers. */
export interface StreamEnd {
  readonly status: 'superseded' | 'duplicate' | 'revoked' | 'expired' | 'slow' | 'stopping' | 'unavailable' | 'refused';
  readonly message: string;
  /** When the agent may come back, milliseconds (`holdfast-retry-ms`). */
  readonly retryMs?: number | undefined;
}

/** A stream that a node has opened, as its transport shows it. */
export interface NodeStream {
  readonly node: PeerNode;
  /** Undefined for an older agent. */
  readonly agent: AgentFacts | undefined;
  /**
   * In order. Resolves when the transport has taken it: true, or false when the stream is over. At most 4 MiB wait; more ends it as `slow`.
   * @throws AgentError `link.too_large` for more than 12 MiB, which is not sent
   */
  send(message: ServerMessage): Promise<boolean>;
  /** Once; later calls do nothing. */
  end(reason: StreamEnd): void;
}

/** What the transport tells of one stream, synchronously and in order. */
export interface NodeStreamHandler {
  /** Well-formed envelopes only; malformed ones are counted by the transport. */
  received(message: LinkMessage): void;
  /** Once, whoever ended it. */
  closed(): void;
}

/** The control plane's side of `NodeAgentStream`. */
export interface NodeStreams {
  /** What is sent as headers, at once, before anything else of the stream; also to older agents, which ignore them. */
  headers(): Omit<ServerFacts, 'epoch'>;
  /**
   * A node's stream is here. The epoch is known when it resolves and goes out in the headers; nothing was sent before.
   * @throws AgentError `link.refused` (a clone, revoked), `store.unavailable`
   */
  open(stream: NodeStream): Promise<{ readonly facts: ServerFacts; readonly handler: NodeStreamHandler }>;
}
