import { verifyAudit as verify } from '../adapters/cli/audit.js';
import type { CliContext, ExitCode } from '../adapters/cli/context.js';
import type { VerifyAuditOptions } from '../adapters/cli/local-verbs.js';
import { pathsOf, usualDataDir } from './paths.js';

/** Reads the files, whether the daemon runs or not. */
export function verifyAudit(context: CliContext, options: VerifyAuditOptions): Promise<ExitCode> {
  return verify(context, pathsOf(options, context.env, usualDataDir()).auditLog, options);
}
