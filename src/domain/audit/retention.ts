import type { ChainEnd } from './line.js';
import type { AuditHead } from './model.js';

export interface AuditLimits {
  /** A file that has so many gets no more: it is larger than this by one batch at most. */
  readonly fileBytes: number;
  /** With the one that is written to. */
  readonly files: number;
  readonly ageMs: number;
}

export const AUDIT_LIMITS: AuditLimits = { fileBytes: 64 * 1024 * 1024, files: 20, ageMs: 365 * 24 * 60 * 60 * 1000 };

/** A file that is no longer written to. */
export interface ClosedFile {
  readonly name: string;
  /** Its last line; undefined when that cannot be read. */
  readonly end: ChainEnd | undefined;
}

export interface Pruning {
  /** To be removed, oldest first. */
  readonly files: readonly string[];
  /** Their last line, to be written down before. */
  readonly to: AuditHead;
}

/** Whether what comes goes into a new file. */
export function rotates(size: number, { fileBytes }: AuditLimits): boolean {
  return size >= fileBytes;
}

/**
 * The oldest of the closed files that are too many, or whose last line is too old; undefined when none is. A file whose end cannot be
 * read stays, and what is newer: nobody could say what went. While the time is not known for sure, `now` is undefined, and nothing is old.
 */
export function planPruning(
  closed: readonly ClosedFile[],
  now: number | undefined,
  { files, ageMs }: AuditLimits,
): Pruning | undefined {
  const names: string[] = [];
  let to: AuditHead | undefined;
  for (const [index, { name, end }] of closed.entries()) {
    if (end === undefined) break;
    const isTooMany = closed.length + 1 - index > files;
    const isTooOld = now !== undefined && end.time < now - ageMs;
    if (!isTooMany && !isTooOld) break;
    names.push(name);
    to = { sequence: end.sequence, digest: end.digest };
  }
  return to === undefined ? undefined : { files: names, to };
}
