import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type BackedUpFile, type BackupFile, type BackupManifest, MANIFEST_NAME } from '../../domain/backup/model.js';
import { decodeManifest, encodeManifest } from '../../domain/backup/schema.js';
import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import { errnoOf } from '../files/errno.js';
import { readTar, TAR_END, type TarMember, tarHeader, tarPadding } from './tar.js';

const CHUNK_BYTES = 1024 * 1024;
const MAX_MANIFEST_BYTES = 64 * 1024;

/** What is to go in, from where. */
export interface BackupSource {
  readonly name: BackupFile;
  readonly path: string;
}

/** Of a file that does not change any more. */
export async function describeFile({ name, path }: BackupSource, { signal }: CallOptions): Promise<BackedUpFile> {
  const digest = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES, signal })) {
    digest.update(chunk);
    bytes += chunk.length;
  }
  return { name, bytes, sha256: digest.digest('hex') };
}

/** The archive, in pieces of at most a megabyte. The sources must be as the manifest says. */
export async function* archiveOf(
  manifest: BackupManifest,
  sources: readonly BackupSource[],
  { signal }: CallOptions,
): AsyncIterable<Uint8Array> {
  const text = Buffer.from(encodeManifest(manifest));
  yield* [tarHeader(MANIFEST_NAME, text.length, manifest.madeAt), text, tarPadding(text.length)];
  for (const { name, path } of sources) {
    const bytes = manifest.files.find((file) => file.name === name)?.bytes ?? 0;
    yield tarHeader(name, bytes, manifest.madeAt);
    yield* createReadStream(path, { highWaterMark: CHUNK_BYTES, signal });
    yield tarPadding(bytes);
  }
  yield TAR_END;
}

/** An archive whose every byte has been checked. */
export interface CheckedArchive {
  readonly manifest: BackupManifest;
  /** Into a new file, 0600 and durable. */
  extract(name: BackupFile, path: string, options: CallOptions): Promise<void>;
  close(): Promise<void>;
}

/** To be closed. @throws AgentError `backup.invalid` when it cannot be read, is damaged or is of a newer version */
export async function openArchive(path: string, options: CallOptions): Promise<CheckedArchive> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw invalid(path, `cannot be read: ${errnoOf(cause) ?? String(cause)}`, cause);
  });
  try {
    const members = await readTar(file);
    const manifest = members === undefined ? undefined : await manifestIn(file, members);
    if (members === undefined || manifest === undefined) {
      throw invalid(path, 'is no archive of a control plane, not all of one, or one of a newer version');
    }
    for (const each of manifest.files) {
      const member = members.find(({ name }) => name === each.name);
      const digest = member?.bytes === each.bytes ? await copyRange(file, member, undefined, options) : '';
      if (digest !== each.sha256) throw invalid(path, `${each.name} in it is damaged`);
    }
    return {
      manifest,
      extract: (name, target, extractOptions) => extract(file, members, { name, target }, extractOptions),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function manifestIn(file: FileHandle, [first]: readonly TarMember[]): Promise<BackupManifest | undefined> {
  if (first?.name !== MANIFEST_NAME || first.bytes > MAX_MANIFEST_BYTES) return undefined;
  const bytes = Buffer.alloc(first.bytes);
  await file.read(bytes, 0, bytes.length, first.offset);
  return decodeManifest(bytes.toString());
}

async function extract(
  file: FileHandle,
  members: readonly TarMember[],
  { name, target }: { readonly name: BackupFile; readonly target: string },
  options: CallOptions,
): Promise<void> {
  const member = members.find((each) => each.name === name);
  if (member === undefined) throw new RangeError(`${name} is not in the archive`);
  const made = await open(target, 'wx', 0o600);
  try {
    await copyRange(file, member, made, options);
    await made.sync();
  } finally {
    await made.close();
  }
}

/** SHA-256 in hex of what was read. */
async function copyRange(
  file: FileHandle,
  { offset, bytes }: TarMember,
  to: FileHandle | undefined,
  { signal }: CallOptions,
): Promise<string> {
  const digest = createHash('sha256');
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (let done = 0; done < bytes; ) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK_BYTES, bytes - done), offset + done);
    if (bytesRead === 0) return '';
    const piece = buffer.subarray(0, bytesRead);
    digest.update(piece);
    await to?.writeFile(piece);
    done += bytesRead;
  }
  return digest.digest('hex');
}

function invalid(path: string, problem: string, cause?: unknown): AgentError {
  return new AgentError('backup.invalid', { problem: `${path} ${problem}` }, { cause });
}
