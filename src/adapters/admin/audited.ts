import { AgentError } from '../../domain/kernel/errors.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Logger } from '../../ports/logger.js';
import { sha256 } from '../log/sha256.js';

/** A call that changes something. */
export interface AuditedCall {
  readonly who: string;
  /** `admin.send` */
  readonly type: string;
  /** The instruction's, or what the call is about. */
  readonly tag: string;
  /** Never recorded, only its digest. */
  readonly payload: string;
}

/** That a call is allowed is on the disk before it does anything, how it ended afterwards (engine.md H1). */
export class Audited {
  readonly #audit: AuditLog;
  readonly #logger: Logger;

  constructor(audit: AuditLog, logger: Logger) {
    this.#audit = audit;
    this.#logger = logger;
  }

  /** @throws AgentError `audit.not_written`, and nothing was done; what `act` throws */
  async run<T>({ payload, ...call }: AuditedCall, options: CallOptions, act: () => Promise<T>): Promise<T> {
    const record = { ...call, payloadDigest: sha256(payload), rule: 'admin socket' };
    await this.#audit.append({ ...record, line: 'decision', result: 'allowed' }, options);
    const ended = async (result: string) => {
      try {
        await this.#audit.append({ ...record, line: 'outcome', result }, { signal: new AbortController().signal });
      } catch (error) {
        this.#logger.error('how an admin call ended is not in the audit log', { type: call.type, tag: call.tag, result, error });
      }
    };
    try {
      const value = await act();
      await ended('done');
      return value;
    } catch (error) {
      await ended(error instanceof AgentError ? error.code : 'failed');
      throw error;
    }
  }
}
