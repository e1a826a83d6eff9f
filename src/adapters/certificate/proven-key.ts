import { createPublicKey, hash, type KeyObject, webcrypto } from 'node:crypto';
import { AgentError } from '../../domain/kernel/errors.js';
import type { ProvenKey } from '../../ports/certificate/certificate-authority.js';
import { Pkcs10CertificateRequest } from './x509.js';

/** A request for RSA 4096 has 1.7 KB; extensions and attributes are ignored, but parsed. */
const MAX_CSR_BYTES = 16 * 1024;

/** OpenSSL's names of P-256 and P-384. */
const curves: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1']);
const MIN_RSA_BITS = 2_048;
const MAX_RSA_BITS = 4_096;
/** Checking a signature takes as long as the exponent is; 1 would be no signature at all. */
const MAX_RSA_EXPONENT = 2n ** 32n;

/** As `CertificateAuthority.proveKey` says. */
export async function proveKey(csr: Uint8Array): Promise<ProvenKey> {
  const refuse = (problem: string, cause?: unknown) => new AgentError('certificate.csr_invalid', { problem }, { cause });
  if (csr.length > MAX_CSR_BYTES) throw refuse(`the request has ${csr.length} bytes; ${MAX_CSR_BYTES} at most`);
  const { request, key } = parse(csr, refuse);
  const objection = objectionTo(key);
  if (objection !== undefined) throw refuse(objection);
  if (!(await isSigned(request))) throw refuse('the request is not signed with its own key');
  return provenKeyOf(key);
}

export function provenKeyOf(key: KeyObject): ProvenKey {
  const spki = key.export({ format: 'der', type: 'spki' });
  return { fingerprint: hash('sha256', spki, 'hex'), spki };
}

function parse(
  csr: Uint8Array,
  refuse: (problem: string, cause: unknown) => AgentError,
): { readonly request: Pkcs10CertificateRequest; readonly key: KeyObject } {
  try {
    const request = new Pkcs10CertificateRequest(Uint8Array.from(csr));
    const spki = Buffer.from(request.publicKey.rawData);
    return { request, key: createPublicKey({ key: spki, format: 'der', type: 'spki' }) };
  } catch (cause) {
    throw refuse('the request is no PKCS#10 request in DER', cause);
  }
}

async function isSigned(request: Pkcs10CertificateRequest): Promise<boolean> {
  try {
    return await request.verify(webcrypto);
  } catch {
    // An algorithm that does not fit the key.
    return false;
  }
}

/** Why the key is not taken. */
function objectionTo({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string | undefined {
  switch (type) {
    case 'ed25519':
      return undefined;
    case 'ec':
      return curves.has(details?.namedCurve ?? '') ? undefined : 'the curve of the key is neither P-256 nor P-384';
    case 'rsa': {
      const { modulusLength = 0, publicExponent = 0n } = details ?? {};
      if (modulusLength < MIN_RSA_BITS || modulusLength > MAX_RSA_BITS) return `the RSA key has ${modulusLength} bits`;
      return publicExponent >= 3n && publicExponent < MAX_RSA_EXPONENT ? undefined : 'the exponent of the RSA key is not taken';
    }
    default:
      return `the key is of type ${type}`;
  }
}
