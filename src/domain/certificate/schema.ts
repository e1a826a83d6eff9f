import { z } from 'zod';
import { AgentError } from '../kernel/errors.js';
import { aid, nid, registrationId } from '../link/model.js';
import type { AdminGrade } from './model.js';
import { adminGrades, certificateName } from './names.js';
import type { AdminRecord, CertificateRecord, IssuerRecord, NodeRecord } from './records.js';
import { type Revocation, revocationTargets } from './revocation.js';
import type { TokenRecord } from './token.js';

/** Keys that it does not know are left to the newer version that wrote them, and dropped by this one. */

/** @param make throws RangeError for what it does not take */
function named<T>(make: (text: string) => T) {
  return z.string().transform((text, context) => {
    try {
      return make(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
      return z.NEVER;
    }
  });
}

const aNid = named(nid);
const anAid = named(aid);
const aRegistration = named(registrationId);
const time = z.number();

const held = z.object({
  serial: z.string(),
  fingerprint: z.string(),
  issued: time,
  notAfter: time,
  firstUsed: time.optional(),
});

const node = z.object({
  nid: aNid,
  aid: anAid,
  registration: aRegistration,
  machineId: z.string(),
  os: z.string(),
  hostCidrs: z.array(z.string()),
  address: z.string(),
  registered: time,
  current: held,
  pending: held.optional(),
  renewals: z.array(time),
});

const certificate = z.object({
  serial: z.string(),
  nid: aNid,
  registration: aRegistration,
  notAfter: time,
  certificate: z.string(),
});

const aGrade = z.string().transform((text, context): AdminGrade => {
  const grade = adminGrades.find((each) => each === text);
  if (grade !== undefined) return grade;
  context.addIssue({ code: 'custom', message: 'no role of people' });
  return z.NEVER;
});

const admin = z.object({
  serial: z.string(),
  aid: anAid,
  name: named(certificateName),
  grade: aGrade,
  issued: time,
  notAfter: time,
  by: z.string(),
});

const token = z.object({
  id: z.string(),
  digest: z.string(),
  aid: anAid,
  purpose: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('join') }),
    z.object({ kind: z.literal('replace'), nid: aNid }),
  ]),
  created: time,
  expires: time,
  used: z
    .object({
      at: time,
      machineId: z.string(),
      nid: aNid,
      registration: aRegistration,
      serial: z.string(),
      fingerprint: z.string(),
    })
    .optional(),
});

const revocation = z.object({
  of: z.enum(revocationTargets),
  id: z.string(),
  from: time,
  kind: z.enum(['retired', 'revoked']),
  reason: z.string(),
  until: time,
});

const former = z.object({ certificate: z.string(), cross: z.string(), replacedAt: time });
const issuer = z.object({ certificate: z.string(), privateKey: z.string(), former: former.optional() });

/** @throws AgentError `store.malformed`, as the others do */
export function decodeNode(key: string, text: string): NodeRecord {
  return decode(node, key, text);
}

export function decodeCertificate(key: string, text: string): CertificateRecord {
  return decode(certificate, key, text);
}

export function decodeAdmin(key: string, text: string): AdminRecord {
  return decode(admin, key, text);
}

export function decodeToken(key: string, text: string): TokenRecord {
  return decode(token, key, text);
}

export function decodeRevocation(key: string, text: string): Revocation {
  return decode(revocation, key, text);
}

export function decodeIssuer(key: string, text: string): IssuerRecord {
  return decode(issuer, key, text);
}

function decode<T>(schema: z.ZodType<T>, key: string, text: string): T {
  const parsed = schema.safeParse(json(key, text));
  if (parsed.success) return parsed.data;
  // Paths and types only: an issuer's value is a secret.
  const places = parsed.error.issues.map(({ path }) => path.join('.') || 'the whole value');
  throw new AgentError('store.malformed', { problem: `${key} cannot be read: ${places.join(', ')}` });
}

function json(key: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AgentError('store.malformed', { problem: `${key} is not JSON` });
  }
}
