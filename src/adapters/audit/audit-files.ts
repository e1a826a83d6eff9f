import { hash } from 'node:crypto';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type AuditLine, type ChainEnd, MAX_LINE_BYTES, parseLine } from '../../domain/audit/line.js';
import type { ClosedFile } from '../../domain/audit/retention.js';

const LINE_FEED = 10;

/** What a crash tears is rarely more than one batch. */
const FIRST_WINDOW = 16 * MAX_LINE_BYTES;

export function sha256(bytes: string | Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}

/** The name that `audit.log` gets when it is full: `audit-1234.log` when 1234 was its last line. */
export function closedName(file: string, last: bigint): string {
  return `${stem(file)}-${last}.log`;
}

/** Where the torn end of `file` is moved to. */
export function tornName(file: string, time: number): string {
  return `${stem(file)}.torn-${new Date(time).toISOString().replaceAll(':', '-')}`;
}

function stem(file: string): string {
  return basename(file).replace(/\.log$/, '');
}

/** Names of the full files of `file`, oldest first. */
export async function closedNames(file: string): Promise<readonly string[]> {
  const prefix = `${stem(file)}-`;
  const numberOf = (name: string) =>
    name.startsWith(prefix) ? /^([1-9]\d{0,15})\.log$/.exec(name.slice(prefix.length))?.[1] : undefined;
  const numbers = (await readdir(dirname(file))).flatMap((name) => numberOf(name) ?? []).map(BigInt);
  return numbers.sort((a, b) => (a < b ? -1 : 1)).map((last) => closedName(file, last));
}

export async function closedFiles(file: string): Promise<readonly ClosedFile[]> {
  const names = await closedNames(file);
  return Promise.all(names.map(async (name) => ({ name, end: await endOf(join(dirname(file), name)) })));
}

async function endOf(path: string): Promise<ChainEnd | undefined> {
  const handle = await open(path, 'r');
  try {
    return (await readEnd(handle, (await handle.stat()).size))?.end;
  } finally {
    await handle.close();
  }
}

export interface FileEnd {
  readonly end: ChainEnd;
  /** Of the file up to and with its last whole line. */
  readonly size: number;
}

/** The last whole line among the first `size` bytes; undefined when there is none. */
export async function readEnd(handle: FileHandle, size: number): Promise<FileEnd | undefined> {
  for (let window = FIRST_WINDOW; ; window *= 4) {
    const start = Math.max(0, size - window);
    const bytes = await readAt(handle, start, size - start);
    const found = lastLine(bytes, start === 0);
    if (found !== undefined) return { end: found.end, size: start + found.size };
    if (start === 0) return undefined;
  }
}

function lastLine(bytes: Buffer, isWhole: boolean): FileEnd | undefined {
  for (let feed = bytes.lastIndexOf(LINE_FEED); feed >= 0; ) {
    const before = feed === 0 ? -1 : bytes.lastIndexOf(LINE_FEED, feed - 1);
    // Its beginning is further up.
    if (before < 0 && !isWhole) return undefined;
    const text = bytes.subarray(before + 1, feed);
    const line = text.length > MAX_LINE_BYTES ? undefined : parseLine(text.toString());
    if (line !== undefined) return { end: endAfter(line, sha256(text)), size: feed + 1 };
    feed = before;
  }
  return undefined;
}

function endAfter({ sequence, time }: AuditLine, digest: string): ChainEnd {
  return { sequence, time, digest };
}

/** Up to `length` bytes; fewer at the end of the file. */
export async function readAt(handle: FileHandle, start: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

export async function writeAt(handle: FileHandle, start: number, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, start + written);
    written += bytesWritten;
  }
}
