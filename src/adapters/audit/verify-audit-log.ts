import { constants, type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { beginCheck, type ChainCheck, type ChainReport, checkLine, endCheck } from '../../domain/audit/chain.js';
import { MAX_LINE_BYTES } from '../../domain/audit/line.js';
import type { AuditHead } from '../../domain/audit/model.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import { errnoOf } from '../files/errno.js';
import { closedNames, sha256 } from './audit-files.js';

export interface AuditVerification extends ChainReport {
  readonly files: number;
  /** Bytes behind the last line feed: a line that is being written, or that a crash has torn. */
  readonly unfinished: number;
}

const LINE_FEED = 10;
const CHUNK_BYTES = 1024 * 1024;
/** While it is read a file may become full or be pruned: then it is read again. Each takes longer to come than all takes to read. */
const ATTEMPTS = 5;

/**
 * Reads the whole audit log, former files too, also while a daemon writes it, and says where its chain breaks first. With `known`, a
 * head that somebody else has kept, a cut end shows as well. Changes nothing.
 * @throws AgentError `audit.unreadable`
 */
export async function verifyAuditLog(
  file: string,
  known: AuditHead | undefined,
  { signal }: CallOptions,
): Promise<AuditVerification> {
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const names = await namesOf(file);
      const found = await verifyFiles(file, names, known, signal);
      if (String(await namesOf(file)) === String(names)) return found;
    }
  } catch (cause) {
    signal.throwIfAborted();
    const problem = `${file} cannot be read: ${errnoOf(cause) ?? String(cause)}`;
    throw new AgentError('audit.unreadable', { problem }, { cause });
  }
  throw new AgentError('audit.unreadable', { problem: `${file}: files come and go faster than they can be read` });
}

async function namesOf(file: string): Promise<readonly string[]> {
  try {
    return await closedNames(file);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function verifyFiles(
  file: string,
  closed: readonly string[],
  known: AuditHead | undefined,
  signal: AbortSignal,
): Promise<AuditVerification> {
  let check = beginCheck(known);
  let files = 0;
  let unfinished = 0;
  const own = basename(file);
  for (const name of [...closed, own]) {
    const handle = await openToRead(join(dirname(file), name));
    if (handle === undefined) continue;
    files++;
    try {
      const read = await checkFile({ handle, name, isFormer: name !== own }, check, signal);
      check = read.check;
      unfinished = read.unfinished;
    } finally {
      await handle.close();
    }
  }
  return { ...endCheck(check), files, unfinished };
}

async function openToRead(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

interface ReadFile {
  readonly check: ChainCheck;
  readonly unfinished: number;
}

/** A former file ends with a line, whether its line feed is still there or not. */
async function checkFile(
  { handle, name, isFormer }: { readonly handle: FileHandle; readonly name: string; readonly isFormer: boolean },
  before: ChainCheck,
  signal: AbortSignal,
): Promise<ReadFile> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let check = before;
  let number = 0;
  let rest: Buffer = Buffer.alloc(0);
  let unfinished = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES);
    if (bytesRead === 0) break;
    let bytes = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
    unfinished += bytesRead;
    for (let feed = bytes.indexOf(LINE_FEED); feed >= 0; feed = bytes.indexOf(LINE_FEED)) {
      check = checkLine(check, foundLine(name, ++number, bytes.subarray(0, feed)));
      bytes = bytes.subarray(feed + 1);
      unfinished = bytes.length;
    }
    // No line is so long: what is behind it need not be kept to be told from one.
    rest = bytes.subarray(0, MAX_LINE_BYTES + 1);
  }
  if (!isFormer || unfinished === 0) return { check, unfinished };
  return { check: checkLine(check, foundLine(name, ++number, rest)), unfinished: 0 };
}

function foundLine(file: string, number: number, bytes: Uint8Array) {
  const text = bytes.length > MAX_LINE_BYTES ? '' : Buffer.from(bytes).toString();
  return { file, number, text, digest: sha256(bytes) };
}
