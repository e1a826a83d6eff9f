import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import type { AbsolutePath } from '../../domain/kernel/paths.js';
import type { LogId, Revision } from '../../domain/log/model.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { Clock } from '../../ports/clock.js';
import type { Backups } from '../../ports/driving/backups.js';
import { archiveOf, type BackupSource, describeFile } from './backup-archive.js';

export interface StoreBackupsParts {
  /** Each puts a verified copy of itself, as of one moment, into a new file (0600). */
  readonly log: { copyTo(file: string, options: CallOptions): Promise<{ readonly logId: LogId; readonly revision: Revision }> };
  readonly store: { copyTo(file: string, options: CallOptions): Promise<void> };
  readonly sealingKey: AbsolutePath;
  /** For the copies that the archive is made of; it is made and removed. */
  readonly folder: AbsolutePath;
  readonly version: string;
  readonly clock: Clock;
}

/** Archives of a control plane's stores. Each makes a copy of itself, the log first; disk space for them is needed meanwhile. */
export class StoreBackups implements Backups {
  readonly #parts: StoreBackupsParts;
  #busy = false;

  constructor(parts: StoreBackupsParts) {
    this.#parts = parts;
  }

  async *take({ withKey }: { readonly withKey: boolean }, options: CallOptions): AsyncIterable<Uint8Array> {
    if (this.#busy) throw new AgentError('backup.busy', { problem: 'another archive is being made' });
    this.#busy = true;
    const { folder } = this.#parts;
    try {
      // What a crash has left.
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
      yield* this.#archive(withKey, options);
    } catch (cause) {
      options.signal.throwIfAborted();
      const problem = cause instanceof AgentError ? (cause.facts.problem ?? cause.message) : String(cause);
      throw new AgentError('backup.not_made', { problem }, { cause });
    } finally {
      await rm(folder, { recursive: true, force: true });
      this.#busy = false;
    }
  }

  async *#archive(withKey: boolean, options: CallOptions): AsyncIterable<Uint8Array> {
    const { log, store, folder, sealingKey, version, clock } = this.#parts;
    const madeAt = clock.now();
    const [logDb, controlDb] = [join(folder, 'log.db'), join(folder, 'control.db')];
    const { logId, revision } = await log.copyTo(logDb, options);
    await store.copyTo(controlDb, options);
    const sources: readonly BackupSource[] = [
      { name: 'log.db', path: logDb },
      { name: 'control.db', path: controlDb },
      ...(withKey ? [{ name: 'sealing.key', path: sealingKey } as const] : []),
    ];
    const files = await Promise.all(sources.map((source) => describeFile(source, options)));
    yield* archiveOf({ program: version, madeAt, logId, revision, files }, sources, options);
  }
}
