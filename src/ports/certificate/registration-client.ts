import type { CallOptions } from '../call-options.js';

export interface RegistrationRequest {
  readonly machineId: string;
  readonly account: string;
  readonly token: string;
  readonly os: string;
  readonly hostCidrs: readonly string[];
  /** DER of a PKCS#10 request; a server that knows none of them makes a key itself. */
  readonly csr: Uint8Array;
}

export interface RegistrationAnswer {
  readonly nid: string;
  /** PEM; empty when the request's key was certified. */
  readonly privateKey: string;
  readonly certificate: string;
  readonly ca: string;
}

/** The control plane's registration port, as a machine that is no node yet calls it. */
export interface RegistrationClient {
  /**
   * Whether the server's root can be read and is the one that was pinned. Sends nothing.
   * @throws AgentError `certificate.root_invalid`
   */
  check(options: CallOptions): Promise<void>;
  /**
   * May be repeated with the same token and request within 10 min: the same answer. On abort the token may have been used.
   * @throws AgentError `certificate.root_invalid`, `certificate.token_refused`, `certificate.unknown_account`, `certificate.too_many`,
   * `certificate.untrusted`, `link.unreachable`, `link.refused`
   */
  register(request: RegistrationRequest, options: CallOptions): Promise<RegistrationAnswer>;
}
