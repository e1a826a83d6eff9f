import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { Subsystem } from '../agent/subsystem.js';

/** Opens the audit log before anything that writes into it, and closes it after. */
export class AuditSubsystem implements Subsystem {
  readonly name = 'audit';
  readonly #audit: AuditLog;

  constructor(audit: AuditLog) {
    this.#audit = audit;
  }

  /** @throws AgentError `audit.not_written` */
  async start(signal: AbortSignal): Promise<void> {
    await this.#audit.open({ signal });
  }

  async ready(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#audit.close();
  }
}
