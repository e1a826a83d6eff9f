import { adminGrades } from '../../domain/certificate/names.js';
import { MAX_ADMIN_TTL_MS } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { RootFacts } from '../../ports/certificate/authority-maker.js';
import type { AdminCertificateFacts, AdminCertificates } from '../../ports/driving/admin-certificates.js';
import { type RootName, type RootStatus, type Roots, type RootUser, rootNames } from '../../ports/driving/roots.js';
import type {
  AdminCertificate,
  CertificateServiceServer,
  Root,
  RootPair,
  RootUser as WireUser,
} from '../generated/holdfast/admin/v1/certificates.js';
import type { Audited } from './audited.js';
import type { GrpcCalls } from './grpc-calls.js';

export interface CertificateParts {
  readonly certificates: AdminCertificates;
  readonly roots: Roots;
}

export function certificateHandlers(
  calls: GrpcCalls,
  { certificates, roots }: CertificateParts,
  audited: Audited,
): CertificateServiceServer {
  return {
    ...rootHandlers(calls, roots, audited),
    createAdminCertificate: calls.unary(async ({ name, role, ttlMs, csr }, signal, caller) => {
      const grade = gradeFromWire(role);
      const call = { name, grade, csr, ttlMs: ttlMs === 0n ? MAX_ADMIN_TTL_MS : Number(ttlMs), by: caller.name };
      const record = {
        caller,
        type: `admin.create_certificate ${grade}`,
        tag: name,
        payload: Buffer.from(csr).toString('base64'),
      };
      const { certificate, ca, facts } = await audited.run(record, { signal }, () => certificates.create(call, { signal }));
      return { certificate, ca, facts: factsToWire(facts) };
    }),
    listAdminCertificates: calls.unary(async (_, signal) => ({
      certificates: (await certificates.list({ signal })).map(factsToWire),
    })),
  };
}

function rootHandlers(
  calls: GrpcCalls,
  roots: Roots,
  audited: Audited,
): Pick<CertificateServiceServer, 'listRoots' | 'rotateRoot' | 'retireRoot'> {
  return {
    listRoots: calls.unary(async (_, signal) => ({ roots: (await roots.list({ signal })).map(statusToWire) })),
    rotateRoot: calls.unary(async ({ name: text }, signal, caller) => {
      const name = rootFromWire(text);
      const record = { caller, type: 'admin.rotate_root', tag: name, payload: '' };
      return { root: statusToWire(await audited.run(record, { signal }, () => roots.rotate(name, { signal }))) };
    }),
    retireRoot: calls.unary(async ({ name: text, force }, signal, caller) => {
      const name = rootFromWire(text);
      const record = { caller, type: 'admin.retire_root', tag: name, payload: force ? 'force' : '' };
      const { retired, revoked } = await audited.run(record, { signal }, () => roots.retire(name, force, { signal }));
      return { retired: rootToWire(retired), revoked: revoked.map(userToWire) };
    }),
  };
}

function rootFromWire(text: string): RootName {
  const name = rootNames.find((each) => each === text);
  if (name !== undefined) return name;
  const problem = `expected one of the roots ${rootNames.join(', ')}, found ${JSON.stringify(text)}`;
  throw new AgentError('certificate.unknown_root', { problem });
}

function statusToWire({ name, current, former }: RootStatus): RootPair {
  return {
    name,
    current: rootToWire(current),
    former: former === undefined ? undefined : rootToWire(former),
    replacedAtMs: BigInt(Math.round(former?.replacedAt ?? 0)),
    inUse: (former?.inUse ?? []).map(userToWire),
  };
}

function rootToWire({ commonName, serial, fingerprint, notBefore, notAfter }: RootFacts): Root {
  return {
    commonName,
    serial,
    fingerprint,
    notBeforeMs: BigInt(Math.round(notBefore)),
    notAfterMs: BigInt(Math.round(notAfter)),
  };
}

function userToWire({ nid, serial, notAfter }: RootUser): WireUser {
  return { node: nid, serial, notAfterMs: BigInt(Math.round(notAfter)) };
}

function gradeFromWire(role: string) {
  const grade = adminGrades.find((each) => each === role);
  if (grade !== undefined) return grade;
  const problem = `expected one of the roles ${adminGrades.join(', ')}, found ${JSON.stringify(role)}`;
  throw new AgentError('certificate.admin_invalid', { problem });
}

function factsToWire({ serial, aid, name, grade, issuedAt, expiresAt, by, revoked }: AdminCertificateFacts): AdminCertificate {
  return {
    ...{ serial, account: aid, name, role: grade, madeBy: by, revoked: revoked ?? '' },
    issuedAtMs: BigInt(Math.round(issuedAt)),
    expiresAtMs: BigInt(Math.round(expiresAt)),
  };
}
