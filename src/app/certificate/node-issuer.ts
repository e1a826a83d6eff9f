import { SERIAL_BYTES, serialOf } from '../../domain/certificate/names.js';
import type { CertificateRecord, HeldCertificate } from '../../domain/certificate/records.js';
import { validityOf } from '../../domain/certificate/validity.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ProvenKey } from '../../ports/certificate/certificate-authority.js';
import type { IssuedPair } from '../../ports/driving/enrolment.js';
import type { NodeIdentity } from '../../ports/driving/node-streams.js';
import type { IssuerAuthority } from './issuer-authority.js';

/** A certificate for a node, in the forms in which it is answered and kept. */
export interface IssuedNode {
  readonly pair: IssuedPair;
  readonly held: HeldCertificate;
  readonly record: CertificateRecord;
}

/** Certifies nodes. What it issues counts only once it stands in the store. */
export class NodeIssuer {
  readonly #authority: IssuerAuthority;
  readonly #randomBytes: (count: number) => Uint8Array;

  constructor(authority: IssuerAuthority, randomBytes: (count: number) => Uint8Array) {
    this.#authority = authority;
    this.#randomBytes = randomBytes;
  }

  /** PEM of the root of a certificate that was issued at this time, wall clock, milliseconds. */
  rootAt(issued: number): string {
    return this.#authority.rootAt(issued);
  }

  /** @throws AgentError `certificate.csr_invalid` */
  async prove(csr: Uint8Array | undefined, options: CallOptions): Promise<ProvenKey | undefined> {
    return csr === undefined ? undefined : this.#authority.proveKey(csr, options);
  }

  /** Without a proven key one is made. @param now wall clock, milliseconds. @throws AgentError `certificate.failed` */
  async issue(identity: NodeIdentity, proven: ProvenKey | undefined, now: number, options: CallOptions): Promise<IssuedNode> {
    const { key, privateKey } = proven === undefined ? await this.#authority.makeKey(options) : { key: proven, privateKey: '' };
    const serial = serialOf(this.#randomBytes(SERIAL_BYTES));
    const validity = validityOf(proven === undefined ? 'madeKey' : 'ownKey', now);
    const ca = this.#authority.root;
    const certificate = await this.#authority.issue({ identity, key, serial, ...validity }, options);
    const { nid, registration } = identity;
    return {
      pair: { privateKey, certificate, ca },
      held: { serial, fingerprint: key.fingerprint, issued: now, notAfter: validity.notAfter },
      record: { serial, nid, registration, notAfter: validity.notAfter, certificate },
    };
  }
}
