import type { IssuerRecord } from '../../domain/certificate/records.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CertificateAuthority, IssueRequest, ProvenKey } from '../../ports/certificate/certificate-authority.js';

/** One issuer as it is at present: its root may be replaced while everybody who signs with it goes on. */
export class IssuerAuthority implements CertificateAuthority {
  #record: IssuerRecord;
  #authority: CertificateAuthority;
  #roots: readonly string[];

  /** @param authority made of `record` */
  constructor(record: IssuerRecord, authority: CertificateAuthority) {
    this.#record = record;
    this.#authority = authority;
    this.#roots = rootsOf(record);
  }

  replace(record: IssuerRecord, authority: CertificateAuthority): void {
    this.#record = record;
    this.#authority = authority;
    this.#roots = rootsOf(record);
  }

  get record(): IssuerRecord {
    return this.#record;
  }

  get root(): string {
    return this.#record.certificate;
  }

  /** Whose certificates are good, the newest first. The same array until it is replaced. */
  get roots(): readonly string[] {
    return this.#roots;
  }

  /** What a server sends behind its own certificate, so that those who know the former root alone trust it. PEM, or empty. */
  get chain(): string {
    return this.#record.former?.cross ?? '';
  }

  /** The root of a certificate that was issued then. @param issued wall clock, milliseconds */
  rootAt(issued: number): string {
    const { certificate, former } = this.#record;
    return former !== undefined && issued < former.replacedAt ? former.certificate : certificate;
  }

  issue(request: IssueRequest, options: CallOptions): Promise<string> {
    return this.#authority.issue(request, options);
  }

  proveKey(csr: Uint8Array, options: CallOptions): Promise<ProvenKey> {
    return this.#authority.proveKey(csr, options);
  }

  makeKey(options: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }> {
    return this.#authority.makeKey(options);
  }
}

function rootsOf({ certificate, former }: IssuerRecord): readonly string[] {
  return former === undefined ? [certificate] : [certificate, former.certificate];
}
