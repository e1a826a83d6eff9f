import { rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { AgentError } from '../../domain/kernel/errors.js';
import type { Revision } from '../../domain/log/model.js';
import { message, openError } from '../sqlite/sqlite-errors.js';
import { checkLog } from './sqlite-log-check.js';
import { exists, makePrivateFile, putInPlace, readOnly } from './sqlite-log-connection.js';
import { LogPaths } from './sqlite-log-paths.js';
import type { FileState } from './sqlite-log-schema.js';

const COPIES_KEPT = 3;

export interface LogCopy {
  readonly file: string;
  /** When it was made, by its name; milliseconds since the Unix epoch. */
  readonly time: number;
  /** Undefined when it is damaged; `problem` then says how. */
  readonly head: { readonly revision: Revision; readonly time: number } | undefined;
  readonly problem: string | undefined;
}

/** The hourly copies beside `file`, newest first, each checked whole. Changes nothing. */
export function listCopies(file: string): readonly LogCopy[] {
  return new LogPaths(file).copies().map((copy) => {
    try {
      return { ...copy, head: checkCopy(copy.file).last, problem: undefined };
    } catch (error) {
      return { ...copy, head: undefined, problem: openError(error, copy.file).message };
    }
  });
}

/** @throws AgentError `log.corrupt`, `log.newer_schema` */
export function checkCopy(file: string): FileState {
  // No server writes to a copy, so that what SQLite leaves beside it may go.
  const left = [`${file}-wal`, `${file}-shm`].filter((each) => !exists(each));
  try {
    return readOnly(file, (db) => checkLog(db));
  } catch (error) {
    throw openError(error, file);
  } finally {
    for (const each of left) rmSync(each, { force: true });
  }
}

/** For the message of a damaged log; `undefined` when there is none. */
export function newestIntactCopy(paths: LogPaths): string | undefined {
  for (const { file } of paths.copies()) {
    try {
      checkCopy(file);
      return file;
    } catch {
      // The one before it may be whole.
    }
  }
  return undefined;
}

/** A new file, checked. @throws AgentError `log.not_written`, `log.corrupt` */
export function copyInto(db: DatabaseSync, file: string): FileState {
  try {
    makePrivateFile(file);
    db.prepare('VACUUM INTO ?').run(file);
  } catch (error) {
    throw new AgentError('log.not_written', { file, problem: `${file}: ${message(error)}` }, { cause: error });
  }
  return checkCopy(file);
}

/**
 * Makes one more copy and keeps the newest 3. It is checked before it replaces an older one: three copies of a damaged log are none.
 * A clock that went back does not make it older than the others.
 */
export function makeCopy(db: DatabaseSync, paths: LogPaths, now: number): { readonly file: string; readonly revision: Revision } {
  const time = Math.max(now, (paths.copies()[0]?.time ?? 0) + 1_000);
  const file = paths.copy(time);
  rmSync(paths.copying, { force: true });
  try {
    const { last } = copyInto(db, paths.copying);
    putInPlace(paths.copying, file, paths.folder);
    for (const old of paths.copies().slice(COPIES_KEPT)) rmSync(old.file, { force: true });
    return { file, revision: last.revision };
  } catch (error) {
    rmSync(paths.copying, { force: true });
    if (error instanceof AgentError) throw error;
    throw new AgentError('log.not_written', { file, problem: `${file}: ${message(error)}` }, { cause: error });
  }
}
