import { createPrivateKey, generateKeyPair, type KeyObject, X509Certificate as NodeCertificate, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';
import type { IssuerRecord } from '../../domain/certificate/records.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { AuthorityMaker, CrossRequest, RootFacts, RootRequest } from '../../ports/certificate/authority-maker.js';
import type { CertificateAuthority, ProvenKey } from '../../ports/certificate/certificate-authority.js';
import { isSignedBy, readValidity, rootFingerprint } from './certificate-reader.js';
import { crossExtensions, rootExtensions } from './extensions.js';
import { provenKeyOf } from './proven-key.js';
import {
  AuthorityKeyIdentifierExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from './x509.js';
import { SIGNING, X509Authority } from './x509-authority.js';

const makeKeyPair = promisify(generateKeyPair);

export class X509AuthorityMaker implements AuthorityMaker {
  async makeRoot({ commonName, serial, notBefore, notAfter }: RootRequest, { signal }: CallOptions): Promise<IssuerRecord> {
    signal.throwIfAborted();
    return orFailed('a root could not be made', async () => {
      const keys = await webcrypto.subtle.generateKey(SIGNING, true, ['sign', 'verify']);
      const subjectKey = await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto);
      const root = await X509CertificateGenerator.createSelfSigned(
        {
          serialNumber: serial,
          name: [{ CN: [commonName] }],
          notBefore: new Date(notBefore),
          notAfter: new Date(notAfter),
          keys,
          signingAlgorithm: SIGNING,
          extensions: rootExtensions(subjectKey),
        },
        webcrypto,
      );
      const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
      const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
      return {
        certificate: `${root.toString('pem')}\n`,
        privateKey: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
      };
    });
  }

  async crossSign(
    root: string,
    by: IssuerRecord,
    { serial, notBefore, notAfter }: CrossRequest,
    { signal }: CallOptions,
  ): Promise<string> {
    signal.throwIfAborted();
    return orFailed('a root could not be certified by the former one', async () => {
      const [subject, issuer] = [new X509Certificate(root), new X509Certificate(by.certificate)];
      const [subjectKey, issuerKey] = [keyIdOf(subject), keyIdOf(issuer)];
      const cross = await X509CertificateGenerator.create(
        {
          serialNumber: serial,
          subject: subject.subjectName,
          issuer: issuer.subjectName,
          notBefore: new Date(notBefore),
          notAfter: new Date(Math.min(notAfter, issuer.notAfter.getTime())),
          publicKey: subject.publicKey,
          signingKey: await signingKeyOf(createPrivateKey(by.privateKey)),
          signingAlgorithm: SIGNING,
          extensions: crossExtensions(
            new SubjectKeyIdentifierExtension(subjectKey),
            new AuthorityKeyIdentifierExtension(issuerKey),
          ),
        },
        webcrypto,
      );
      return `${cross.toString('pem')}\n`;
    });
  }

  rootFacts(root: string): RootFacts {
    try {
      const certificate = new NodeCertificate(root);
      const fingerprint = rootFingerprint(root) ?? '';
      return { commonName: certificate.subject.replace(/^CN=/, ''), fingerprint, ...readValidity(certificate) };
    } catch (cause) {
      throw new AgentError('certificate.failed', { problem: 'a root cannot be read' }, { cause });
    }
  }

  isIssuedBy(certificate: string, root: string): boolean {
    return isSignedBy(new NodeCertificate(certificate), new NodeCertificate(root));
  }

  async open({ certificate, privateKey }: IssuerRecord, { signal }: CallOptions): Promise<CertificateAuthority> {
    signal.throwIfAborted();
    return orFailed('an authority cannot be used', async () => {
      const key = createPrivateKey(privateKey);
      if (!new NodeCertificate(certificate).checkPrivateKey(key)) throw new Error('its key is another');
      return new X509Authority(certificate, await signingKeyOf(key));
    });
  }

  async makeKey({ signal }: CallOptions): Promise<{ readonly key: ProvenKey; readonly privateKey: string }> {
    signal.throwIfAborted();
    const { publicKey, privateKey } = await makeKeyPair('ec', { namedCurve: 'P-256' });
    return { key: provenKeyOf(publicKey), privateKey: String(privateKey.export({ format: 'pem', type: 'pkcs8' })) };
  }
}

function signingKeyOf(key: KeyObject): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', key.export({ format: 'der', type: 'pkcs8' }), SIGNING, false, ['sign']);
}

/** The root's own spelling of it. */
function keyIdOf(root: X509Certificate): string {
  const keyId = root.getExtension(SubjectKeyIdentifierExtension)?.keyId;
  if (keyId === undefined) throw new Error('the root has no key identifier');
  return keyId;
}

async function orFailed<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof AgentError) throw cause;
    // Not the cause's text: a parser may quote the key that it could not read.
    throw new AgentError('certificate.failed', { problem: what }, { cause });
  }
}
