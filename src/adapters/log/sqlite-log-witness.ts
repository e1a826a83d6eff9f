import { closeSync, constants, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { AgentError } from '../../domain/kernel/errors.js';
import type { EntryHead } from '../../domain/log/entry.js';
import { digest, type LogId, logId, type Revision, revision } from '../../domain/log/model.js';
import { sha256 } from './sha256.js';

/**
 * The newest acknowledged revision, beside the log. SQLite takes a lost or damaged WAL for one that was never written, and starts
 * from an older state without a word, which would use revisions twice; this file tells (engine.md E3). It is written after each
 * commit without an fsync of its own: kill -9 does not lose it, and after a power cut it may be older, which only checks less.
 */
export class Witness {
  readonly #file: string;
  #descriptor: number | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** A witness that fails to be written does not fail the commit, which is durable without it. */
  write(id: LogId, { revision, digest }: EntryHead): void {
    const text = `${id} ${String(revision).padStart(20, '0')} ${digest}`;
    try {
      this.#descriptor ??= openSync(this.#file, constants.O_RDWR | constants.O_CREAT, 0o600);
      writeSync(this.#descriptor, `${text} ${sha256(text).slice(0, 16)}\n`, 0);
    } catch {
      this.close();
    }
  }

  close(): void {
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    if (descriptor === undefined) return;
    try {
      fsyncSync(descriptor);
    } catch {
      // As in `write`.
    }
    closeSync(descriptor);
  }
}

export interface Witnessed {
  readonly logId: LogId;
  readonly revision: Revision;
  readonly digest: string;
}

/** Undefined when there is none, or none that its own checksum confirms. */
export function readWitness(file: string): Witnessed | undefined {
  try {
    const [id = '', number = '', own = '', check] = readFileSync(file, 'utf8').trimEnd().split(' ');
    if (sha256(`${id} ${number} ${own}`).slice(0, 16) !== check) return undefined;
    return { logId: logId(id), revision: revision(BigInt(number)), digest: digest(own) };
  } catch {
    return undefined;
  }
}

/** @throws AgentError `log.corrupt` when the log is behind what had been acknowledged, or has another past */
export function checkWitness(seen: Witnessed | undefined, id: LogId, last: EntryHead): void {
  if (seen === undefined || seen.logId !== id || seen.revision < last.revision) return;
  if (seen.revision === last.revision && seen.digest === last.digest) return;
  const problem =
    seen.revision > last.revision
      ? `it ends at revision ${last.revision}, but ${seen.revision} had been acknowledged: its -wal is lost or damaged, or the file was replaced`
      : `revision ${last.revision} is another than the one that had been acknowledged`;
  throw new AgentError('log.corrupt', { problem });
}
