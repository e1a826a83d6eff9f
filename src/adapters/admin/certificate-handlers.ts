import { adminGrades } from '../../domain/certificate/names.js';
import { MAX_ADMIN_TTL_MS } from '../../domain/certificate/validity.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AdminCertificateFacts, AdminCertificates } from '../../ports/driving/admin-certificates.js';
import type { AdminCertificate, CertificateServiceServer } from '../generated/holdfast/admin/v1/certificates.js';
import type { Audited } from './audited.js';
import type { GrpcCalls } from './grpc-calls.js';

export function certificateHandlers(
  calls: GrpcCalls,
  certificates: AdminCertificates,
  audited: Audited,
): CertificateServiceServer {
  return {
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
