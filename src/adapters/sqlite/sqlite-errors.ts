import { basename, dirname } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';

/** SQLite's primary result codes, sqlite3.h. */
const BUSY = 5;
const LOCKED = 6;
const NOMEM = 7;
const CORRUPT = 11;
const FULL = 13;
const NOTADB = 26;

/** What no repair of the file helps against: no space, no descriptors, a read-only file system. */
const UNABLE = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM', 'EROFS']);

/**
 * What went wrong while a log file was opened or read. Whatever is not known to be something else is damage: a file that SQLite, the
 * digests or our parsers cannot make sense of is never silently replaced.
 */
export function openError(error: unknown, file: string): AgentError {
  if (error instanceof AgentError) {
    if (error.facts.file !== undefined) return error;
    const problem = `${file}: ${error.message.slice(error.code.length + 2)}`;
    return new AgentError(error.code, { ...error.facts, file, problem }, { cause: error });
  }
  const facts = { file, problem: `${file}: ${message(error)}` };
  const code = sqliteCode(error);
  if (code === BUSY || code === LOCKED) return new AgentError('agent.data_dir_locked', facts, { cause: error });
  if (code === FULL || code === NOMEM || UNABLE.has(errno(error) ?? ''))
    return new AgentError('log.not_written', facts, { cause: error });
  return new AgentError('log.corrupt', facts, { cause: error });
}

/** What to do about a damaged log in `file`, as a command line that can be pasted. */
export function remedyOfDamage(file: string, intactCopy: string | undefined): string {
  return intactCopy === undefined
    ? `there is no intact copy here: run \`${restoreCommand(file)} COPY\` with one that you keep elsewhere, or move all but ` +
        `node-identity.json out of ${dirname(file)}, start again and apply your manifests`
    : `run \`${restoreCommand(file)}\`, which puts ${basename(intactCopy)} in place`;
}

export function restoreCommand(file: string): string {
  return `holdfast restore --data-dir ${shellWord(dirname(file))}`;
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Whether the file is known to be damaged; another failure (an I/O error above all) may pass. */
export function isDamage(error: unknown): boolean {
  const code = sqliteCode(error);
  return (error instanceof AgentError && error.code === 'log.corrupt') || code === CORRUPT || code === NOTADB;
}

/** `SQLITE_FULL`-like text for people, with the code where there is one. */
export function message(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const code = sqliteCode(error);
  return code === undefined ? text : `${text} (SQLite ${code})`;
}

export function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** The primary code; the extended one has more in its upper bytes. */
function sqliteCode(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;
}
