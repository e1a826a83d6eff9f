import { open } from 'node:fs/promises';
import type { AuditHead, AuditRecord } from '../../domain/audit/model.js';
import { AUDIT_LIMITS, type AuditLimits } from '../../domain/audit/retention.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AuditLog } from '../../ports/audit/audit-log.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { StatusProblem } from '../../ports/driving/operations.js';
import type { Logger } from '../../ports/logger.js';
import { errnoOf } from '../files/errno.js';
import { AbortListeners } from './abort-listeners.js';
import { type AuditEvent, AuditWriter, type DurableEnd, type OpenFile } from './audit-writer.js';

/** At 350 bytes a line a third of a MiB, which takes 5 to 10 ms of the main thread to render. */
const BATCH_RECORDS = 1_000;

export interface FileAuditLogOptions {
  /** Path of `audit.log`. Former files and torn ends stand beside it. One process at a time. */
  readonly file: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits?: AuditLimits;
  /** How the file is opened; for tests of what disks do. */
  readonly openFile?: OpenFile;
}

interface Waiting {
  readonly record: AuditRecord;
  readonly signal: AbortSignal;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Failure {
  readonly problem: string;
  readonly since: number;
}

/**
 * JSON lines in a file. Records in order of the calls: while some are being written the next ones gather, and then go together with one
 * fsync. After a failure each later call tries again with a file that is opened anew, without what had failed.
 */
export class FileAuditLog implements AuditLog {
  readonly #options: FileAuditLogOptions;
  #state: 'new' | 'open' | 'closed' = 'new';
  #startedAt = 0;
  #writer: AuditWriter | undefined;
  /** Of the writer, or of the last one that there was. */
  #durable: DurableEnd | undefined;
  readonly #aborts = new AbortListeners();
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #failure: Failure | undefined;
  #lost: Failure | undefined;

  constructor(options: FileAuditLogOptions) {
    this.#options = options;
  }

  async open({ signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (this.#state === 'closed') throw notWritten('the audit log is closed');
    if (this.#state === 'new') this.#startedAt = this.#options.clock.monotonic();
    this.#state = 'open';
    while (this.#running !== undefined) await this.#running;
    if (this.#writer !== undefined) return;
    const opening = this.#attempt(async () => {});
    // Whoever appends meanwhile comes after it.
    this.#running = opening.then(() => {});
    const error = await opening;
    this.#running = undefined;
    this.#wake();
    if (error !== undefined) throw error;
  }

  append(record: AuditRecord, { signal }: CallOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#state !== 'open') throw notWritten('the audit log is not open');
      // Once it is being written, it may be written all the same.
      const forget = this.#aborts.add(signal, () => reject(signal.reason));
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          forget();
          settle(value);
        };
      };
      this.#queue.push({ record, signal, resolve: settled(resolve), reject: settled(reject) });
      this.#wake();
    });
  }

  head(): AuditHead | undefined {
    const end = this.#durable?.end;
    return end === undefined || end.sequence === 0n ? undefined : { sequence: end.sequence, digest: end.digest };
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    while (this.#running !== undefined) await this.#running;
    await this.#writer?.close();
    this.#writer = undefined;
  }

  problems(): readonly StatusProblem[] {
    const { file } = this.#options;
    const found: StatusProblem[] = [];
    if (this.#failure !== undefined) {
      const { problem, since } = this.#failure;
      const remedy = 'free disk space or mend the disk; the next instruction tries again';
      found.push({ subject: 'audit log', reason: `${file} cannot be written: ${problem}`, since, remedy });
    }
    if (this.#lost !== undefined) {
      const { problem, since } = this.#lost;
      const remedy = 'look at the disk, and with `holdfast audit verify` at what is missing';
      found.push({ subject: 'audit log', reason: `${file} has lost lines: ${problem}`, since, remedy });
    }
    return found;
  }

  #wake(): void {
    if (this.#queue.length > 0) this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Whoever appends in the same turn of the event loop shares the first batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, BATCH_RECORDS).filter(({ signal }) => !signal.aborted);
      this.#queue = this.#queue.slice(BATCH_RECORDS);
      const error =
        batch.length === 0 ? undefined : await this.#attempt((writer) => writer.write(batch.map(({ record }) => record)));
      for (const { resolve, reject } of batch) {
        if (error === undefined) resolve();
        else reject(error);
      }
    }
    this.#running = undefined;
  }

  /** Through the writer that there is, or a new one. After a failure there is none. */
  async #attempt(work: (writer: AuditWriter) => Promise<void>): Promise<AgentError | undefined> {
    try {
      const writer = await this.#usable();
      await work(writer);
      this.#durable = writer.durable;
      if (this.#failure !== undefined) this.#options.logger.info('the audit log is written again');
      this.#failure = undefined;
      return undefined;
    } catch (cause) {
      const problem = errnoOf(cause) ?? (cause instanceof Error ? cause.message : String(cause));
      this.#durable = this.#writer?.durable ?? this.#durable;
      await this.#writer?.close();
      this.#writer = undefined;
      if (this.#failure?.problem !== problem) this.#options.logger.error('the audit log cannot be written', { problem });
      this.#failure = { problem, since: this.#failure?.since ?? this.#options.clock.now() };
      return notWritten(`${this.#options.file} cannot be written: ${problem}`, cause);
    }
  }

  async #usable(): Promise<AuditWriter> {
    if (this.#writer !== undefined && !(await this.#writer.isInPlace())) {
      await this.#writer.close();
      this.#writer = undefined;
    }
    this.#writer ??= await AuditWriter.open(this.#writerOptions(), this.#durable);
    return this.#writer;
  }

  #writerOptions() {
    const { file, clock, limits = AUDIT_LIMITS, openFile = open } = this.#options;
    const report = (event: AuditEvent) => this.#report(event);
    return { file, clock, limits, startedAt: this.#startedAt, openFile, report };
  }

  #report(event: AuditEvent): void {
    const { logger, clock } = this.#options;
    switch (event.event) {
      case 'recovered':
        logger.warn('the torn end of the audit log was set aside', { file: event.file, bytes: event.bytes });
        break;
      case 'lost':
        this.#lost = { problem: event.problem, since: clock.now() };
        logger.error('the audit log has lost lines', { problem: event.problem });
        break;
      case 'not_pruned':
        logger.warn('an old file of the audit log cannot be removed', { problem: event.problem });
    }
  }
}

function notWritten(problem: string, cause?: unknown): AgentError {
  return new AgentError('audit.not_written', { problem }, { cause });
}
