import type { AuditRecord } from '../../src/domain/audit/model.js';

export function auditRecord(tag: string, more: Partial<AuditRecord> = {}): AuditRecord {
  const payloadDigest = 'a'.repeat(64);
  return {
    who: 'server:s1',
    tag,
    type: 'RUN_WEB_REQUEST',
    payloadDigest,
    rule: 'r1',
    line: 'decision',
    result: 'allowed',
    ...more,
  };
}
