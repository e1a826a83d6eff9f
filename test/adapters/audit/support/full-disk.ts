import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FileAuditLog } from '../../../../src/adapters/audit/file-audit-log.js';
import { verifyAuditLog } from '../../../../src/adapters/audit/verify-audit-log.js';
import { SystemClock } from '../../../../src/adapters/clock/system-clock.js';
import { AgentError } from '../../../../src/domain/kernel/errors.js';
import { FakeLogger } from '../../../fakes/fake-logger.js';
import { auditRecord } from '../../../support/audit-record.js';

/** Fills the disk with lines, goes on when there is space again, and prints what it saw as JSON. */
const [file = ''] = process.argv.slice(2);
const never = { signal: new AbortController().signal };
const filler = join(dirname(file), 'filler');
writeFileSync(filler, Buffer.alloc(256 * 1024));
const log = new FileAuditLog({ file, clock: new SystemClock(), logger: new FakeLogger() });
await log.open(never);

let number = 0;
async function append(): Promise<string> {
  number += 1;
  try {
    await log.append(auditRecord(`t${number}`, { result: 'x'.repeat(400) }), never);
    return 'written';
  } catch (error) {
    return error instanceof AgentError ? error.code : String(error);
  }
}

let written = 0;
let outcome = await append();
while (outcome === 'written') {
  written += 1;
  outcome = await append();
}
const head = log.head();
const whileFull = [outcome, await append(), ...(await Promise.all([append(), append()]))];
const problems = log.problems().map(({ reason }) => reason);
rmSync(filler);
const after = [await append(), await append()];
await log.close();
const report = await verifyAuditLog(file, log.head(), never);
const seen = {
  written,
  whileFull,
  problems,
  after,
  head: Number(head?.sequence),
  lines: report.lines,
  end: Number(report.head?.sequence),
};
process.stdout.write(JSON.stringify({ ...seen, break: report.break?.problem ?? 'none', well: log.problems().length === 0 }));
