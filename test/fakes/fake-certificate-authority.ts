import type { IssuerRecord } from '../../src/domain/certificate/records.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { AuthorityMaker, CrossRequest, RootFacts, RootRequest } from '../../src/ports/certificate/authority-maker.js';
import type { CertificateAuthority, IssueRequest, ProvenKey } from '../../src/ports/certificate/certificate-authority.js';
import type { KeyMaker, KeyRequest } from '../../src/ports/certificate/key-maker.js';
import { fakeCsr, fakeKey, formatFakeCertificate, parseFakeCertificate, provenOf } from './fake-certificates.js';

let made = 0;
const newKey = () => {
  made += 1;
  const name = `key-${made}`;
  return { key: provenOf(name), privateKey: fakeKey(name), name };
};

/** Signs by naming itself. */
export class FakeCertificateAuthority implements CertificateAuthority {
  readonly root: string;
  #failure: unknown;
  #issued = 0;

  constructor(
    root = formatFakeCertificate({ issuer: 'root', serial: 'root', fingerprint: 'root', notBefore: 0, notAfter: 1e15 }),
  ) {
    this.root = root;
  }

  /** How many certificates it has signed. */
  get issued(): number {
    return this.#issued;
  }

  /** The next call rejects with `error`. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  async issue(
    { identity, key, serial, notBefore, notAfter, hosts = [] }: IssueRequest,
    { signal }: CallOptions,
  ): Promise<string> {
    this.#mayFail(signal);
    this.#issued += 1;
    const issuer = parseFakeCertificate(this.root).serial;
    return formatFakeCertificate({ issuer, identity, serial, fingerprint: key.fingerprint, notBefore, notAfter, hosts });
  }

  async proveKey(csr: Uint8Array, { signal }: CallOptions): Promise<ProvenKey> {
    this.#mayFail(signal);
    const name = /^FAKE REQUEST (.+)$/.exec(Buffer.from(csr).toString())?.[1];
    if (name === undefined) throw new AgentError('certificate.csr_invalid', { problem: 'no request' });
    return provenOf(name);
  }

  async makeKey({ signal }: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }> {
    this.#mayFail(signal);
    const { key, privateKey } = newKey();
    return { key, privateKey };
  }

  #mayFail(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

export class FakeAuthorityMaker implements AuthorityMaker {
  async makeRoot({ serial, notBefore, notAfter }: RootRequest, { signal }: CallOptions): Promise<IssuerRecord> {
    signal.throwIfAborted();
    const { key, privateKey } = newKey();
    const certificate = formatFakeCertificate({ issuer: serial, serial, fingerprint: key.fingerprint, notBefore, notAfter });
    return { certificate, privateKey };
  }

  async crossSign(root: string, by: IssuerRecord, { serial, notBefore }: CrossRequest, { signal }: CallOptions): Promise<string> {
    signal.throwIfAborted();
    const { fingerprint } = parseFakeCertificate(root);
    const { serial: issuer, notAfter } = parseFakeCertificate(by.certificate);
    return formatFakeCertificate({ issuer, serial, fingerprint, notBefore, notAfter });
  }

  rootFacts(root: string): RootFacts {
    const { serial, fingerprint, notBefore, notAfter } = parseFakeCertificate(root);
    return { commonName: `root ${serial}`, serial, fingerprint, notBefore, notAfter };
  }

  isIssuedBy(certificate: string, root: string): boolean {
    return parseFakeCertificate(certificate).issuer === parseFakeCertificate(root).serial;
  }

  async open({ certificate, privateKey }: IssuerRecord, { signal }: CallOptions): Promise<CertificateAuthority> {
    signal.throwIfAborted();
    const name = /^FAKE KEY (.+)\n$/.exec(privateKey)?.[1] ?? '';
    if (!isOf(certificate, name)) throw new AgentError('certificate.failed', { problem: 'its key is another' });
    return new FakeCertificateAuthority(certificate);
  }

  async makeKey({ signal }: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }> {
    signal.throwIfAborted();
    const { key, privateKey } = newKey();
    return { key, privateKey };
  }
}

function isOf(certificate: string, name: string): boolean {
  try {
    return parseFakeCertificate(certificate).fingerprint === provenOf(name).fingerprint;
  } catch {
    return false;
  }
}

export class FakeKeyMaker implements KeyMaker {
  async makeRequest({ signal }: CallOptions): Promise<KeyRequest> {
    signal.throwIfAborted();
    const { name, privateKey } = newKey();
    return { privateKey, csr: fakeCsr(name) };
  }
}
