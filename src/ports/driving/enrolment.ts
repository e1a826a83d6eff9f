import type { CallerFacts } from '../../domain/link/model.js';
import type { CallOptions } from '../call-options.js';
import type { PeerNode } from './node-streams.js';

export interface RegisterCall {
  readonly machineId: string;
  readonly aid: string;
  readonly token: string;
  readonly os: string;
  readonly hostCidrs: readonly string[];
  /** DER of a PKCS#10 request; undefined for an older agent, whose key the server makes. */
  readonly csr: Uint8Array | undefined;
  /** IP address that it calls from. */
  readonly address: string;
}

export interface RenewOptions extends CallOptions {
  /** What the process that asks says of itself; undefined for an older agent. */
  readonly caller?: CallerFacts | undefined;
}

export interface IssuedPair {
  /** PEM, PKCS#1; empty where the caller made the key itself. */
  readonly privateKey: string;
  /** One PEM block. */
  readonly certificate: string;
  /** One PEM block. */
  readonly ca: string;
}

/** How a machine becomes a node, and stays one. */
export interface Enrolment {
  /**
   * @throws AgentError `certificate.token_refused` (one text for bad, expired and used), `certificate.csr_invalid`, `certificate.too_many`,
   * `certificate.unknown_account`, `certificate.incomplete`, `audit.not_written`, `store.unavailable`
   */
  register(call: RegisterCall, options: CallOptions): Promise<IssuedPair & { readonly nid: string }>;

  /**
   * A new certificate for the node that calls, if it is the machine that has the node's current stream.
   * @throws AgentError as `register`, and `certificate.not_current`
   */
  renew(node: PeerNode, csr: Uint8Array | undefined, options: RenewOptions): Promise<IssuedPair>;

  /**
   * Returns when the node may call with this certificate; called for each call.
   * @throws AgentError `certificate.revoked`, `store.unavailable` while it is not known yet what is revoked
   */
  admit(node: PeerNode): void;
}
