import { constants, type FileHandle, open } from 'node:fs/promises';
import type { CallOptions } from '../../ports/call-options.js';
import { errnoOf } from './errno.js';

/** `problem` ends a sentence that begins with the file's name: "is a directory". */
export type TextFile =
  | { readonly found: 'text'; readonly text: string }
  | { readonly found: 'nothing' }
  | { readonly found: 'unusable'; readonly problem: string; readonly cause?: unknown };

/** A regular file of UTF-8 without byte order mark and of at most `limit` bytes. Rejects on abort only. */
export async function readTextFile(path: string, limit: number, { signal }: CallOptions): Promise<TextFile> {
  signal.throwIfAborted();
  let file: FileHandle;
  try {
    // Without O_NONBLOCK a FIFO in the file's place holds the start up for ever.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    return errnoOf(cause) === 'ENOENT' ? { found: 'nothing' } : unreadable(cause);
  }
  try {
    const facts = await file.stat();
    if (!facts.isFile()) return { found: 'unusable', problem: facts.isDirectory() ? 'is a directory' : 'is not a regular file' };
    const bytes = await readUpTo(file, limit + 1);
    signal.throwIfAborted();
    return bytes.length > limit ? { found: 'unusable', problem: `has more than ${limit} bytes` } : decode(bytes);
  } catch (cause) {
    signal.throwIfAborted();
    return unreadable(cause);
  } finally {
    await file.close();
  }
}

async function readUpTo(file: FileHandle, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let length = 0; length < limit; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(limit - length, 65_536)));
    if (bytesRead === 0) break;
    chunks.push(buffer.subarray(0, bytesRead));
    length += bytesRead;
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Buffer): TextFile {
  const start = bytes.subarray(0, 3).toString('hex');
  if (start === 'efbbbf') return { found: 'unusable', problem: 'begins with a byte order mark; save it as UTF-8 without one' };
  if (start.startsWith('fffe') || start.startsWith('feff')) return { found: 'unusable', problem: 'is UTF-16; save it as UTF-8' };
  try {
    return { found: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (cause) {
    return { found: 'unusable', problem: `is not UTF-8, first on line ${lineOfBadByte(bytes)}`, cause };
  }
}

function lineOfBadByte(bytes: Buffer): number {
  // The first replacement character of a lenient reading stands where the strict one stopped, unless one was written on purpose.
  const lenient = bytes.toString('utf8');
  return lenient.slice(0, Math.max(0, lenient.indexOf('\ufffd'))).split('\n').length;
}

function unreadable(cause: unknown): TextFile {
  return { found: 'unusable', problem: `cannot be read: ${errnoOf(cause) ?? String(cause)}`, cause };
}
