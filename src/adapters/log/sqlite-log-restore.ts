import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { AgentError } from '../../domain/kernel/errors.js';
import { type LogId, logId, type Revision } from '../../domain/log/model.js';
import { message, openError, remedyOfDamage } from '../sqlite/sqlite-errors.js';
import { checkLog } from './sqlite-log-check.js';
import { connect, foldIn, keepPrivate, putInPlace, readOnly, syncPath } from './sqlite-log-connection.js';
import { checkCopy } from './sqlite-log-copies.js';
import { LogPaths } from './sqlite-log-paths.js';
import { type FileState, readState, writeState } from './sqlite-log-schema.js';
import { readWitness } from './sqlite-log-witness.js';

export interface RestoreOptions {
  /** The log, `log.db`. */
  readonly file: string;
  /** Wall clock, for the name of what is set aside. */
  readonly now: number;
  /** The copy to take; the newest intact one when it is not named. */
  readonly copy?: string;
}

export interface Restored {
  readonly copy: string;
  readonly revision: Revision;
  /** Log time of that revision. */
  readonly time: number;
  /** New: whoever holds a cursor of the old log is told `log.changed` and takes a snapshot. */
  readonly logId: LogId;
  /** Newest revision that the old log had acknowledged, if that is known: what came after `revision` is lost. */
  readonly acknowledged: Revision | undefined;
  /** What stood in the way and is kept, under its new names. */
  readonly aside: readonly string[];
}

/**
 * Puts a copy in the place of a damaged log. Synchronous: for a command, while no server runs. A crash in the middle leaves either the
 * old log, or none and the copies (a start then says so, and restoring again finishes it), or the new one.
 * @throws AgentError `agent.data_dir_locked` while a server runs, `log.corrupt` when there is no intact copy, `log.not_written`
 */
export function restoreLog({ file, now, copy }: RestoreOptions): Restored {
  const paths = new LogPaths(file);
  refuseWhileInUse(paths);
  try {
    const chosen = choose(paths, copy);
    const restored = prepare(paths, chosen);
    const acknowledged = readWitness(paths.witness)?.revision;
    const aside = setAside(paths, now);
    putInPlace(paths.restoring, paths.file, paths.folder);
    const { revision, time } = restored.last;
    return { copy: chosen, revision, time, logId: restored.logId, acknowledged, aside };
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError('log.not_written', { file, problem: `${file}: ${message(error)}` }, { cause: error });
  }
}

function refuseWhileInUse({ file }: LogPaths): void {
  try {
    if (existsSync(file)) readOnly(file, (db) => db.prepare('SELECT 1 FROM sqlite_schema').get());
  } catch (error) {
    const failure = openError(error, file);
    // Any other failure is why it is restored.
    if (failure.code === 'agent.data_dir_locked') throw failure;
  }
}

function choose(paths: LogPaths, named: string | undefined): string {
  if (named !== undefined) {
    checkCopy(named);
    return named;
  }
  const problems: string[] = [];
  for (const { file } of paths.copies()) {
    try {
      checkCopy(file);
      return file;
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  const { file } = paths;
  const problem = problems.length === 0 ? 'there is no copy of it' : `no copy of it is intact: ${problems.join('; ')}`;
  throw new AgentError('log.corrupt', { file, problem: `${file}: ${problem}`, remedy: remedyOfDamage(file, undefined) });
}

/** The copy under a name of its own, with a new log id, checked once more as it will stand. */
function prepare(paths: LogPaths, copy: string): FileState {
  for (const leftOver of [paths.restoring, `${paths.restoring}-wal`]) rmSync(leftOver, { force: true });
  copyFileSync(copy, paths.restoring);
  // Hourly copies have none; a log that was set aside and is named by hand may.
  if (existsSync(`${copy}-wal`)) copyFileSync(`${copy}-wal`, `${paths.restoring}-wal`);
  keepPrivate(paths.restoring);
  const db = connect(paths.restoring);
  try {
    writeState(db, { ...readState(db), logId: logId(randomUUID()) });
    foldIn(db);
    return checkLog(db);
  } finally {
    db.close();
  }
}

/** The names keep the pair of file and WAL together, so that SQLite's own tools can look at it. */
function setAside(paths: LogPaths, now: number): readonly string[] {
  let base = paths.aside(now);
  for (let n = 2; existsSync(base); n += 1) base = `${paths.aside(now)}-${n}`;
  const moved: string[] = [];
  // The witness last: without it, a log that is still in place would be taken for whole.
  for (const suffix of ['', '-wal', '-shm', '.head']) {
    if (!existsSync(`${paths.file}${suffix}`)) continue;
    renameSync(`${paths.file}${suffix}`, `${base}${suffix}`);
    moved.push(`${base}${suffix}`);
  }
  syncPath(paths.folder);
  return moved;
}
