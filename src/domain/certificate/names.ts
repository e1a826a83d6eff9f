import { hex } from '../kernel/base64-url.js';
import { aid, nid, registrationId } from '../link/model.js';
import type { AdminGrade, CertificateIdentity } from './model.js';

/** Random bytes that a serial is made of. */
export const SERIAL_BYTES = 16;

const SCHEME = 'holdfast';
/** From the least to the greatest: each may do what those before it may. */
export const adminGrades: readonly AdminGrade[] = ['viewer', 'operator', 'admin'];

/** What stands in a certificate's subject, for people: nobody is known by it. */
export interface Subject {
  readonly commonName: string;
  readonly organization?: string;
}

export function subjectOf(identity: CertificateIdentity): Subject {
  if (identity.role === 'server') return { commonName: identity.name };
  return { commonName: identity.role === 'node' ? identity.nid : identity.name, organization: identity.aid };
}

/**
 * The URI by which a certificate is known: `holdfast:node:<aid>:<nid>:<registration>`, `holdfast:server:<name>` or
 * `holdfast:admin:<aid>:<name>:<grade>`.
 */
export function identityUri(identity: CertificateIdentity): string {
  switch (identity.role) {
    case 'node':
      return [SCHEME, 'node', identity.aid, identity.nid, identity.registration].join(':');
    case 'server':
      return [SCHEME, 'server', identity.name].join(':');
    case 'admin':
      return [SCHEME, 'admin', identity.aid, identity.name, identity.grade].join(':');
  }
}

/**
 * The identity in a certificate's URIs, which are all that counts: the role is the second word. `undefined` when none is ours, when one
 * is malformed, or when there are two: which of them holds would be a guess.
 */
export function identityOfUris(uris: readonly string[]): CertificateIdentity | undefined {
  const [ours, ...others] = uris.filter((uri) => uri.startsWith(`${SCHEME}:`));
  return ours === undefined || others.length > 0 ? undefined : identityOfUri(ours);
}

function identityOfUri(uri: string): CertificateIdentity | undefined {
  const [, role, ...words] = uri.split(':');
  const [first = '', second = '', third = ''] = words;
  try {
    if (role === 'node' && words.length === 3) {
      return { role, aid: aid(first), nid: nid(second), registration: registrationId(third) };
    }
    if (role === 'server' && words.length === 1) return { role, name: certificateName(first) };
    const grade = adminGrades.find((each) => each === third);
    if (role === 'admin' && words.length === 3 && grade !== undefined) {
      return { role, aid: aid(first), name: certificateName(second), grade };
    }
  } catch {
    // A word that is no name.
  }
  return undefined;
}

/** The name of a server or an admin. @throws RangeError when `text` is not what `nid` takes: a colon would make another identity of it. */
export function certificateName(text: string): string {
  return nid(text);
}

/** A serial of 128 bits: 32 hex digits. The two highest bits are fixed, so that it is positive and never shorter. */
export function serialOf(randomBytes: Uint8Array): string {
  if (randomBytes.length !== SERIAL_BYTES) throw new RangeError(`${SERIAL_BYTES} bytes are needed, got ${randomBytes.length}`);
  const [first = 0, ...rest] = randomBytes;
  return hex(Uint8Array.of((first & 0x3f) | 0x40, ...rest));
}

/** `node n1`, `server a`, `admin alice`. */
export function describeIdentity(identity: CertificateIdentity): string {
  return identity.role === 'node' ? `node ${identity.nid}` : `${identity.role} ${identity.name}`;
}
