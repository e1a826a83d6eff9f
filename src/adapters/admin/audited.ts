import type { AdminCaller } from '../../domain/admin/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import { RateLimits } from '../../domain/link/rate-limit.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Logger } from '../../ports/logger.js';
import { sha256 } from '../log/sha256.js';

/** A call that changes something. */
export interface AuditedCall {
  readonly caller: AdminCaller;
  /** `admin.send` */
  readonly type: string;
  /** The instruction's, or what the call is about. */
  readonly tag: string;
  /** Never recorded, only its digest. */
  readonly payload: string;
}

/** Of one caller. Who may nothing must not be able to push older lines out of the log, which keeps 1.3 GB. */
const DENIALS = { perSecond: 1, burst: 20 };

/** That a call is allowed is on the disk before it does anything, how it ended afterwards (engine.md H1). */
export class Audited {
  readonly #audit: AuditLog;
  readonly #logger: Logger;
  readonly #denials = new RateLimits(DENIALS);

  constructor(audit: AuditLog, logger: Logger) {
    this.#audit = audit;
    this.#logger = logger;
  }

  /** @throws AgentError `audit.not_written`, and nothing was done; what `act` throws */
  async run<T>(call: AuditedCall, options: CallOptions, act: () => Promise<T>): Promise<T> {
    const record = recordOf(call);
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

  /** That it is not allowed; nothing was done that a line would have to precede. Not more often than `DENIALS` says. */
  async denied(call: AuditedCall, why: string): Promise<void> {
    if (!this.#denials.take(call.caller.name, performance.now())) return;
    const { signal } = new AbortController();
    try {
      await this.#audit.append({ ...recordOf(call), line: 'decision', result: `denied: ${why}` }, { signal });
    } catch (error) {
      this.#logger.error('an admin call that was denied is not in the audit log', { type: call.type, error });
    }
  }
}

function recordOf({ caller, type, tag, payload }: AuditedCall) {
  return { who: caller.who, type, tag, payloadDigest: sha256(payload), rule: caller.rule };
}
