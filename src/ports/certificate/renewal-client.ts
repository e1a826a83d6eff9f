import type { CallOptions } from '../call-options.js';
import type { Pair } from './pair-store.js';

export interface RenewalAnswer {
  /** PEM; empty when the request's key was certified. */
  readonly privateKey: string;
  readonly certificate: string;
  readonly ca: string;
}

/** The mutual channel, as far as certificates go. */
export interface RenewalClient {
  /**
   * A certificate to follow that of `pair`, over a connection with `pair`.
   * @throws AgentError `certificate.refused`, `certificate.too_many`, `certificate.untrusted`, `link.unreachable`, `link.refused`
   */
  regenerate(pair: Pair, csr: Uint8Array, options: CallOptions): Promise<RenewalAnswer>;
  /**
   * Resolves when a server took a call over a connection of its own with `pair`; to the server that is its first use.
   * @throws AgentError as `regenerate` does: `certificate.refused` means that the pair is of no use, `link.unreachable` that nothing is known
   */
  tryPair(pair: Pair, options: CallOptions): Promise<void>;
}
