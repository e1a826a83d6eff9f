import type { AdminGrade, CertificateIdentity } from '../../domain/certificate/model.js';
import { certificateName, SERIAL_BYTES, serialOf } from '../../domain/certificate/names.js';
import { type Lifetime, type Validity, validityOf } from '../../domain/certificate/validity.js';
import type { Aid } from '../../domain/link/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { AuthorityMaker } from '../../ports/certificate/authority-maker.js';
import type { CertificateAuthority } from '../../ports/certificate/certificate-authority.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import type { Clock } from '../../ports/clock.js';
import type { Authorities } from './control-plane-identity.js';

export interface OwnCertificatesConfig {
  readonly maker: AuthorityMaker;
  readonly authorities: Authorities;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** `ca` is the root that those who are called, or who call, are judged by; `chain` is behind the certificate of a server, PEM or empty. */
export type OwnPair = Pair & Validity & { readonly serial: string; readonly chain: string };

/** Certificates of the control plane's own servers, and of those who operate it. Their keys are kept nowhere here. */
export class OwnCertificates {
  readonly #config: OwnCertificatesConfig;

  constructor(config: OwnCertificatesConfig) {
    this.#config = config;
  }

  /**
   * For the server of a port, valid for 90 days: it is made anew at each start, and by `renewalTime` while running.
   * @param name of this replica @param hosts names and addresses under which it is called
   * @throws AgentError `certificate.failed`; RangeError for a name that is none
   */
  async server(port: 'l1' | 'l2' | 'admin', name: string, hosts: readonly string[], options: CallOptions): Promise<OwnPair> {
    const identity = { role: 'server', name: certificateName(name) } as const;
    const authority = this.#config.authorities[port];
    const { chain } = authority;
    const pair = await this.#make(authority, identity, 'server', hosts, options);
    return { ...pair, chain, certificate: `${pair.certificate}${chain}` };
  }

  /** Whether the pair of a port is of the present root, and shown as it is to be. */
  isOfPresentRoot(port: 'l1' | 'l2' | 'admin', { ca, chain }: OwnPair): boolean {
    const authority = this.#config.authorities[port];
    return ca === authority.root && chain === authority.chain;
  }

  /** For somebody who operates the control plane, for a year. @throws AgentError `certificate.failed`; RangeError for no name */
  admin(account: Aid, name: string, grade: AdminGrade, options: CallOptions): Promise<OwnPair> {
    const identity = { role: 'admin', aid: account, name: certificateName(name), grade } as const;
    return this.#make(this.#config.authorities.admin, identity, 'admin', [], options);
  }

  async #make(
    authority: CertificateAuthority,
    identity: CertificateIdentity,
    lifetime: Lifetime,
    hosts: readonly string[],
    options: CallOptions,
  ): Promise<OwnPair> {
    const { clock, maker, randomBytes } = this.#config;
    const { key, privateKey } = await maker.makeKey(options);
    const validity = validityOf(lifetime, clock.now());
    const serial = serialOf(randomBytes(SERIAL_BYTES));
    const ca = authority.root;
    const certificate = await authority.issue({ identity, key, serial, hosts, ...validity }, options);
    return { certificate, privateKey, ca, serial, chain: '', ...validity };
  }
}
