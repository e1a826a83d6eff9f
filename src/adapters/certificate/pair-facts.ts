import { X509Certificate as NodeCertificate } from 'node:crypto';
import type { PairFacts } from '../../domain/adoption/model.js';
import { aid, nid } from '../../domain/link/model.js';
import type { Pair } from '../../ports/certificate/pair-store.js';
import { readPresented } from './certificate-reader.js';
import { checkedPair } from './pair-reader.js';
import { X509Certificate } from './x509.js';

/**
 * What a pair is, of whatever control plane: ours name the node in a URI, others in the subject alone.
 * @throws AgentError `certificate.unusable` when the parts are not whole, or do not belong together
 */
export function readPairFacts(pair: Pair): PairFacts {
  const { serial, notBefore, notAfter } = checkedPair(pair);
  const { raw } = new NodeCertificate(pair.certificate);
  const { identity, trusted } = readPresented(raw, pair.ca);
  const named =
    identity?.role === 'node'
      ? { nid: identity.nid, aid: identity.aid }
      : { nid: onlyName(raw, 'CN', nid), aid: onlyName(raw, 'O', aid) };
  return { serial, notBefore, notAfter, isOfRoot: trusted, ...named };
}

/** Of several nobody knows which one counts. */
function onlyName<T>(der: Uint8Array, field: 'CN' | 'O', make: (text: string) => T): T | undefined {
  const [only, ...others] = new X509Certificate(Uint8Array.from(der)).subjectName.getField(field);
  if (only === undefined || others.length > 0) return undefined;
  try {
    return make(only);
  } catch {
    return undefined;
  }
}
