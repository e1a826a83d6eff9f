import { createPrivateKey, webcrypto } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { KeyMaker, KeyRequest } from '../../ports/certificate/key-maker.js';
import { Pkcs10CertificateRequestGenerator } from './x509.js';
import { SIGNING } from './x509-authority.js';

/**
 * P-256: made in a millisecond also on small machines, where RSA 2048 may take a second, a tenth of its handshake's cost, and taken by
 * every TLS library that speaks 1.2. Names in the request would be ignored: there is one that says so.
 */
export class X509KeyMaker implements KeyMaker {
  async makeRequest({ signal }: CallOptions): Promise<KeyRequest> {
    signal.throwIfAborted();
    try {
      const keys = await webcrypto.subtle.generateKey(SIGNING, true, ['sign', 'verify']);
      const request = await Pkcs10CertificateRequestGenerator.create(
        { name: [{ CN: ['node'] }], keys, signingAlgorithm: SIGNING },
        webcrypto,
      );
      const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
      const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
      return {
        privateKey: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
        csr: new Uint8Array(request.rawData),
      };
    } catch (cause) {
      throw new AgentError('certificate.failed', { problem: 'a key could not be made' }, { cause });
    }
  }
}
