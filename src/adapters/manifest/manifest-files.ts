import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AgentError } from '../../domain/kernel/errors.js';
import { MAX_DOCUMENTS, MAX_PROBLEMS } from '../../domain/kernel/limits.js';
import { objectsOf } from '../../domain/resource/manifest.js';
import type { Problem } from '../../domain/resource/problem.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ManifestDocument } from '../../ports/driving/resources.js';
import type { Manifests } from '../../ports/resource/manifest-source.js';
import { errnoOf } from '../files/errno.js';
import { nameOf, parseManifest } from './manifest-yaml.js';
import { LineFinder } from './problem-lines.js';

const MIB = 1024 * 1024;
export const MAX_FILE_BYTES = 16 * MIB;
/** What one apply can send. */
const MAX_BYTES = 64 * MIB;
const EXTENSIONS = ['.yaml', '.yml', '.json'];

/**
 * Reads YAML or JSON documents, taken apart where they are lists, from files, from the manifests directly in folders, and from standard input for `-`. A file that is
 * named twice is read once.
 * @throws AgentError `resource.invalid` naming file, line and what was expected
 */
export async function readManifests(
  paths: readonly string[],
  stdin: AsyncIterable<Uint8Array>,
  { signal }: CallOptions,
): Promise<Manifests> {
  const texts = new Map<string, string>();
  const seen = new Set<string>();
  let bytes = 0;
  for (const path of paths) {
    for (const file of path === '-' ? [path] : await filesOf(path)) {
      signal.throwIfAborted();
      const identity = file === '-' ? file : resolve(file);
      if (seen.has(identity)) continue;
      seen.add(identity);
      const content = file === '-' ? await readStream(stdin, file, signal) : await readBounded(file, signal);
      bytes += content.length;
      if (bytes > MAX_BYTES) throw invalid(file, `expected at most ${MAX_BYTES / MIB} MiB in all files, found more`);
      texts.set(file, decodeText(file, content));
    }
  }
  const describe = describer(texts);
  return { documents: parseAll(texts, describe), describe };
}

/** The same files are the same source, from wherever and in whatever order they are named. */
export function sourceOf(paths: readonly string[]): string {
  return [...new Set(paths.map((path) => (path === '-' ? '-' : resolve(path))))].sort().join(',');
}

export function isManifestName(name: string): boolean {
  return !name.startsWith('.') && EXTENSIONS.some((ending) => name.endsWith(ending));
}

function parseAll(texts: ReadonlyMap<string, string>, describe: Manifests['describe']): readonly ManifestDocument[] {
  const documents: ManifestDocument[] = [];
  let count = 0;
  for (const [file, text] of texts) {
    for (const { number, value } of parseManifest(file, text)) {
      const found = value === null ? { objects: [] } : objectsOf(value);
      if ('problems' in found)
        throw new AgentError('resource.invalid', { problem: wrong(file, number, found.problems, describe) });
      count += Math.max(1, found.objects.length);
      if (count > MAX_DOCUMENTS) throw invalid(file, `expected at most ${MAX_DOCUMENTS} documents, found more`);
      for (const object of found.objects) documents.push({ file, number, ...object });
    }
  }
  return documents;
}

function wrong(file: string, document: number, problems: readonly Problem[], describe: Manifests['describe']): string {
  return problems
    .slice(0, MAX_PROBLEMS)
    .map((problem) => describe({ file, document, ...problem }))
    .join('\n  ');
}

function describer(texts: ReadonlyMap<string, string>): Manifests['describe'] {
  const finders = new Map([...texts].map(([file, text]) => [file, new LineFinder(text)]));
  return ({ file, document, path, message }) => {
    const line = finders.get(file)?.lineOf(document, path);
    return `${nameOf(file)}${line === undefined ? '' : `:${line}`}: document ${document}${path === '' ? '' : `, ${path}`}: ${message}`;
  };
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    return (await readdir(path))
      .filter(isManifestName)
      .sort()
      .map((name) => join(path, name));
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** What a shell hands over with `<(command)` is open already, and somebody writes it. */
const HANDED_OVER = /^(\/dev\/stdin|\/(dev|proc\/self)\/fd\/\d+)$/;

/** Reads no more than the limit, whatever the file is: it may grow. */
async function readBounded(file: string, signal: AbortSignal): Promise<Uint8Array> {
  const handedOver = HANDED_OVER.test(file);
  try {
    // Without O_NONBLOCK opening a FIFO waits for a writer, and holds up the whole process when it wants to end.
    await using handle = await open(file, constants.O_RDONLY | (handedOver ? 0 : constants.O_NONBLOCK));
    const entry = await handle.stat();
    if (entry.isDirectory()) throw invalid(file, 'expected a file, found a folder');
    if (!entry.isFile() && !handedOver) throw invalid(file, 'expected a file, found a pipe or a device; - reads standard input');
    if (entry.size > MAX_FILE_BYTES) throw tooLarge(file);
    return await readStream(handle.createReadStream({ autoClose: false }), file, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof AgentError ? error : unreadable(file, error);
  }
}

async function readStream(stream: AsyncIterable<Uint8Array>, file: string, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of untilAbort(stream, signal)) {
    bytes += chunk.length;
    if (bytes > MAX_FILE_BYTES) throw tooLarge(file);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Standard input may be a terminal at which nobody types. */
async function* untilAbort<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => {});
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const iterator = stream[Symbol.asyncIterator]();
  try {
    for (let next = await Promise.race([iterator.next(), aborted]); next.done !== true; ) {
      yield next.value;
      next = await Promise.race([iterator.next(), aborted]);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Not waited for: the return of a stream that stands still comes when its read does.
    iterator.return?.().catch(() => {});
  }
}

function decodeText(file: string, bytes: Uint8Array): string {
  try {
    // Takes a byte order mark away.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Falls through to the one message for what is no text.
  }
  throw invalid(file, 'expected YAML or JSON text in UTF-8, found binary data');
}

function unreadable(file: string, error: unknown): AgentError {
  const reason = errnoOf(error) ?? String(error);
  return invalid(file, reason === 'ENOENT' ? 'there is no such file or folder' : `cannot be read: ${reason}`, error);
}

function tooLarge(file: string): AgentError {
  return invalid(file, `expected at most ${MAX_FILE_BYTES / MIB} MiB; split the file`);
}

function invalid(file: string, message: string, cause?: unknown): AgentError {
  return new AgentError('resource.invalid', { problem: `${nameOf(file)}: ${message}` }, { cause });
}
