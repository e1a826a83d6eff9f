import type { AuditRecord } from '../../domain/audit/model.js';
import type { Row } from '../../domain/instruction/row.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { Logger } from '../../ports/logger.js';

/** What happens to instructions with effects while the audit log cannot be written (engine.md H3). */
export type OnAuditFailure = 'refuse' | 'continue';

interface AuditTrailParts {
  readonly audit: AuditLog;
  readonly logger: Logger;
  readonly onFailure: OnAuditFailure;
}

type Subject = Pick<Row, 'who' | 'tag' | 'type' | 'payloadDigest'>;

/** One line for each decision and each outcome. */
export class AuditTrail {
  readonly #parts: AuditTrailParts;
  /** Lines that could not be written. */
  missing = 0;

  constructor(parts: AuditTrailParts) {
    this.#parts = parts;
  }

  /** Why it may not go on, undefined when the line is durable or need not be. Does not throw. */
  async decision(subject: Subject, rule: string, result: string): Promise<string | undefined> {
    const failure = await this.#append({ ...linesOf(subject), rule, line: 'decision', result });
    return this.#parts.onFailure === 'refuse' ? failure : undefined;
  }

  /** Durable, or counted, when it resolves. Does not throw. */
  async outcome(subject: Subject, rule: string, result: string): Promise<void> {
    await this.#append({ ...linesOf(subject), rule, line: 'outcome', result });
  }

  async #append(record: AuditRecord): Promise<string | undefined> {
    try {
      await this.#parts.audit.append(record, { signal: NEVER });
      return undefined;
    } catch (error) {
      this.missing += 1;
      this.#parts.logger.warn('a line of the audit log is missing', { tag: record.tag, line: record.line, error });
      return error instanceof Error ? error.message : String(error);
    }
  }
}

function linesOf({ who, tag, type, payloadDigest }: Subject) {
  return { who, tag, type, payloadDigest };
}

const NEVER = new AbortController().signal;
