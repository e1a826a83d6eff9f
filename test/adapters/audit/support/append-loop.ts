import { FileAuditLog } from '../../../../src/adapters/audit/file-audit-log.js';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { AUDIT_LIMITS } from '../../../../src/domain/audit/retention.js';
import { FakeLogger } from '../../../fakes/fake-logger.js';
import { auditRecord } from '../../../support/audit-record.js';

// append-loop.ts FILE RUN: appends from ten sides until it is killed, and prints the tag of each line that was acknowledged.
const [file = '', run = ''] = process.argv.slice(2);
const never = { signal: new AbortController().signal };
// Small files, so that a kill meets rotations too.
const limits = { ...AUDIT_LIMITS, fileBytes: 20_000, files: 1_000_000 };
const log = new FileAuditLog({ file, clock: new SystemClock(), logger: new FakeLogger(), limits });
await log.open(never);

async function appendOn(side: number): Promise<never> {
  for (let i = 0; ; i++) {
    const tag = `${run}-${side}-${i}`;
    await log.append(auditRecord(tag), never);
    process.stdout.write(`${tag};\n`);
  }
}
await Promise.all(Array.from({ length: 10 }, (_, side) => appendOn(side)));
