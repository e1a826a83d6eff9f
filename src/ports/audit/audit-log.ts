import type { AuditHead, AuditRecord } from '../../domain/audit/model.js';
import type { CallOptions } from '../call-options.js';
import type { ProblemSource } from '../node/problem-source.js';

/** Append-only; each line carries the digest of the one before. */
export interface AuditLog extends ProblemSource {
  /** A torn last line is set aside and the chain goes on with a line that says so. @throws AgentError `audit.not_written` */
  open(options: CallOptions): Promise<void>;
  /** Durable when it resolves; in the order of the calls, many together. @throws AgentError `audit.not_written` */
  append(record: AuditRecord, options: CallOptions): Promise<void>;
  /** Undefined before the first line. */
  head(): AuditHead | undefined;
  /** What was appended is durable. Safe before `open` and twice. */
  close(): Promise<void>;
}
