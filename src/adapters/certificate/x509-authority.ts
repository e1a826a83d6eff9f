import { createPublicKey, generateKeyPair, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';
import type { CertificateIdentity } from '../../domain/certificate/model.js';
import { subjectOf } from '../../domain/certificate/names.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { CertificateAuthority, IssueRequest, ProvenKey } from '../../ports/certificate/certificate-authority.js';
import { Slots } from '../threads/slots.js';
import { leafExtensions } from './extensions.js';
import { proveKey, provenKeyOf } from './proven-key.js';
import {
  AuthorityKeyIdentifierExtension,
  type JsonName,
  PublicKey,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from './x509.js';

const makeKeyPair = promisify(generateKeyPair);

/** RSA 2048 takes 50 to 300 ms of a thread of libuv's pool, which has four; more at once would only make everybody wait. */
const KEYS_AT_A_TIME = 4;

export const SIGNING = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** An authority with a P-256 key. Signing, and making keys, happens in threads of the pool. */
export class X509Authority implements CertificateAuthority {
  readonly root: string;
  readonly #certificate: X509Certificate;
  readonly #issuerKey: AuthorityKeyIdentifierExtension;
  readonly #signingKey: webcrypto.CryptoKey;
  readonly #slots = new Slots(KEYS_AT_A_TIME);

  /** @param root PEM of its certificate, which carries its key's identifier */
  constructor(root: string, signingKey: webcrypto.CryptoKey) {
    this.root = root;
    this.#certificate = new X509Certificate(root);
    // The root's own spelling of it: how it is computed is for whoever made the root to say.
    const keyId = this.#certificate.getExtension(SubjectKeyIdentifierExtension)?.keyId;
    if (keyId === undefined) throw new AgentError('certificate.failed', { problem: 'the root has no key identifier' });
    this.#issuerKey = new AuthorityKeyIdentifierExtension(keyId);
    this.#signingKey = signingKey;
  }

  async issue(
    { identity, key, serial, notBefore, notAfter, hosts = [] }: IssueRequest,
    { signal }: CallOptions,
  ): Promise<string> {
    signal.throwIfAborted();
    try {
      const publicKey = new PublicKey(Uint8Array.from(key.spki));
      const subjectKey = await SubjectKeyIdentifierExtension.create(publicKey, false, webcrypto);
      const leaf = await X509CertificateGenerator.create(
        {
          serialNumber: serial,
          subject: subjectName(identity),
          issuer: this.#certificate.subjectName,
          notBefore: new Date(notBefore),
          notAfter: new Date(notAfter),
          publicKey,
          signingKey: this.#signingKey,
          signingAlgorithm: SIGNING,
          extensions: leafExtensions({ identity, hosts, isRsa: isRsa(key), subjectKey, issuerKey: this.#issuerKey }),
        },
        webcrypto,
      );
      return `${leaf.toString('pem')}\n`;
    } catch (cause) {
      throw new AgentError('certificate.failed', { problem: `a certificate could not be made: ${String(cause)}` }, { cause });
    }
  }

  async proveKey(csr: Uint8Array, { signal }: CallOptions): Promise<ProvenKey> {
    signal.throwIfAborted();
    return proveKey(csr);
  }

  makeKey(options: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }> {
    return this.#slots.use(async () => {
      const { publicKey, privateKey } = await makeKeyPair('rsa', { modulusLength: 2_048 });
      return { key: provenKeyOf(publicKey), privateKey: String(privateKey.export({ format: 'pem', type: 'pkcs1' })) };
    }, options);
  }
}

function subjectName(identity: CertificateIdentity): JsonName {
  const { commonName, organization } = subjectOf(identity);
  return [...(organization === undefined ? [] : [{ O: [organization] }]), { CN: [commonName] }];
}

function isRsa({ spki }: ProvenKey): boolean {
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  return key.asymmetricKeyType === 'rsa';
}
