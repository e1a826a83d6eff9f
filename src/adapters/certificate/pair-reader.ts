import { createPrivateKey, X509Certificate } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Pair, StoredPair } from '../../ports/certificate/pair-store.js';
import { readValidity } from './certificate-reader.js';

/**
 * The pair, if its parts are whole and belong together. Keys may be PKCS#1, PKCS#8 or SEC 1.
 * @throws AgentError `certificate.unusable`; it never quotes a key
 */
export function checkedPair(pair: Pair): StoredPair {
  const certificate = readable('the certificate is no certificate in PEM', () => new X509Certificate(pair.certificate));
  const key = readable('the private key is no key in PEM', () => createPrivateKey(pair.privateKey));
  readable('the root is no certificate in PEM', () => new X509Certificate(pair.ca));
  if (!readable('the private key is of another kind', () => certificate.checkPrivateKey(key))) {
    throw new AgentError('certificate.unusable', { problem: 'certificate and private key do not belong together' });
  }
  return { ...pair, ...readValidity(certificate) };
}

function readable<T>(problem: string, read: () => T): T {
  try {
    return read();
  } catch {
    // Not the cause: a parser may quote what it could not read.
    throw new AgentError('certificate.unusable', { problem });
  }
}
