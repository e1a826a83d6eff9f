import { createHash } from 'node:crypto';
import type { AuditHead, AuditRecord } from '../../src/domain/audit/model.js';
import { AgentError } from '../../src/domain/kernel/errors.js';
import type { AuditLog } from '../../src/ports/audit/audit-log.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { StatusProblem } from '../../src/ports/driving/operations.js';

/** A disk with room for every line, until a test says otherwise. */
export class FakeAuditLog implements AuditLog {
  readonly #records: AuditRecord[] = [];
  #head: AuditHead | undefined;
  #state: 'new' | 'open' | 'closed' = 'new';
  #full = false;
  #failure: unknown;

  get records(): readonly AuditRecord[] {
    return this.#records;
  }

  /** The next `open` or `append` rejects with `error` and changes nothing. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  /** From now on nothing can be written. */
  fill(): void {
    this.#full = true;
  }

  /** There is room again. */
  free(): void {
    this.#full = false;
  }

  async open({ signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    this.#state = 'open';
  }

  async append(record: AuditRecord, { signal }: CallOptions): Promise<void> {
    this.#mayFail(signal);
    if (this.#state !== 'open') throw new AgentError('audit.not_written', { problem: 'the audit log is not open' });
    if (this.#full) throw new AgentError('audit.not_written', { problem: 'the audit log: no space left on device' });
    const line = `${this.#head?.digest ?? ''}${JSON.stringify(record)}`;
    this.#records.push(record);
    this.#head = { sequence: (this.#head?.sequence ?? 0n) + 1n, digest: createHash('sha256').update(line).digest('hex') };
  }

  head(): AuditHead | undefined {
    return this.#head;
  }

  async close(): Promise<void> {
    this.#state = 'closed';
  }

  problems(): readonly StatusProblem[] {
    if (!this.#full) return [];
    return [{ subject: 'audit', reason: 'no space left on device', since: undefined, remedy: 'free some space' }];
  }

  /** `decision allowed RUN_WEB_REQUEST t1 server:s1`, one a line, in order. */
  dump(): string {
    return this.#records.map(({ line, result, type, tag, who }) => [line, result, type, tag, who].join(' ')).join('\n');
  }

  #mayFail(signal: AbortSignal): void {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }
}
