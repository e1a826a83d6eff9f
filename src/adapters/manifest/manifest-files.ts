import { open, readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Composer, type Document, isCollection, isNode, isPair, LineCounter, Parser } from 'yaml';
import { AgentError } from '../../domain/kernel/errors.js';
import type { ManifestDocument } from '../../ports/driving/resources.js';
import type { Manifests } from '../../ports/resource/manifest-source.js';
import { errnoOf } from '../files/errno.js';

export const MAX_FILE_BYTES = 16 * 1024 * 1024;
export const MAX_DOCUMENTS = 20_000;
const EXTENSIONS = ['.yaml', '.yml', '.json'];

/**
 * Reads YAML or JSON documents from files, from the manifests directly in folders, and from standard input for `-`.
 * @throws AgentError `resource.invalid` naming file, line and what was expected
 */
export async function readManifests(paths: readonly string[], stdin: AsyncIterable<Uint8Array>): Promise<Manifests> {
  const texts = new Map<string, string>();
  for (const path of paths) {
    if (path === '-') texts.set('-', decodeText('-', await readStream(stdin)));
    else for (const file of await filesOf(path)) texts.set(file, decodeText(file, await readBounded(file)));
  }
  const documents: ManifestDocument[] = [];
  for (const [file, text] of texts) {
    for (const document of parse(file, text)) {
      documents.push(document);
      if (documents.length > MAX_DOCUMENTS) throw invalid(file, `expected at most ${MAX_DOCUMENTS} documents, found more`);
    }
  }
  return {
    documents,
    describe: ({ file, document, path, message }) => {
      const text = texts.get(file);
      const line = text === undefined ? undefined : lineOf(text, document, path);
      return `${nameOf(file)}${line === undefined ? '' : `:${line}`}: document ${document}${path === '' ? '' : `, ${path}`}: ${message}`;
    },
  };
}

/** The same paths are the same source, from wherever they are named. */
export function sourceOf(paths: readonly string[]): string {
  return paths.map((path) => (path === '-' ? '-' : resolve(path))).join(',');
}

async function filesOf(path: string): Promise<readonly string[]> {
  const entry = await stat(path).catch((error: unknown) => {
    throw invalid(path, errnoOf(error) === 'ENOENT' ? 'there is no such file or folder' : 'cannot be read', error);
  });
  if (!entry.isDirectory()) return [path];
  const names = (await readdir(path)).filter(
    (name) => !name.startsWith('.') && EXTENSIONS.some((ending) => name.endsWith(ending)),
  );
  return names.sort().map((name) => join(path, name));
}

/** Reads no more than the limit, whatever the file is: it may grow, or be a device. */
async function readBounded(file: string): Promise<Uint8Array> {
  let handle: Awaited<ReturnType<typeof open>> | undefined;
  try {
    handle = await open(file);
    const entry = await handle.stat();
    if (entry.isDirectory()) throw invalid(file, 'expected a file, found a folder');
    if (entry.size > MAX_FILE_BYTES) throw tooLarge(file);
    return await readStream(handle.createReadStream({ autoClose: false }), file);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw invalid(file, `cannot be read: ${error instanceof Error ? error.message : String(error)}`, error);
  } finally {
    await handle?.close();
  }
}

async function readStream(stream: AsyncIterable<Uint8Array>, file = '-'): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > MAX_FILE_BYTES) throw tooLarge(file);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function decodeText(file: string, bytes: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Falls through to the one message for what is no text.
  }
  throw invalid(file, 'expected YAML or JSON text in UTF-8, found binary data');
}

/** One document at a time: the syntax tree of a large file is many times its size. */
function* compose(text: string, lines: LineCounter): Generator<Document.Parsed> {
  // Warnings are about tags that nobody resolves: what they stand for would be lost.
  const composer = new Composer({ lineCounter: lines, prettyErrors: false, schema: 'core', logLevel: 'silent' });
  yield* composer.compose(new Parser(lines.addNewLine).parse(text));
}

function* parse(file: string, text: string): Generator<ManifestDocument> {
  const lines = new LineCounter();
  let number = 0;
  try {
    for (const document of compose(text, lines)) {
      number++;
      const [problem] = [...document.errors, ...document.warnings];
      if (problem !== undefined) throw invalid(`${file}:${lines.linePos(problem.pos[0]).line}`, readable(problem.message));
      const value: unknown = document.toJS({ maxAliasCount: 0 });
      if (value === null || value === undefined) continue;
      yield { file, number, value };
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw invalid(file, `document ${number || 1}: ${whyUnreadable(error)}`, error);
  }
}

function whyUnreadable(error: unknown): string {
  if (error instanceof RangeError) return 'nested too deeply';
  if (error instanceof ReferenceError) return 'expected no aliases: write the value out where it is needed';
  return error instanceof Error ? readable(error.message) : String(error);
}

function lineOf(text: string, number: number, path: string): number | undefined {
  const lines = new LineCounter();
  let current = 0;
  for (const document of compose(text, lines)) {
    if (++current !== number) continue;
    const parts = path.split(/[.[\]]+/).filter((part) => part !== '');
    for (let length = parts.length; length >= 0; length--) {
      const offset = offsetOf(document, parts.slice(0, length));
      if (offset !== undefined) return lines.linePos(offset).line;
    }
  }
  return undefined;
}

/** Of the key where there is one: that is where people look. */
function offsetOf(document: Document.Parsed, path: readonly string[]): number | undefined {
  const last = path.at(-1);
  const parent = path.length <= 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (last !== undefined && isCollection(parent)) {
    for (const item of parent.items) {
      if (isPair(item) && isNode(item.key) && item.key.toJSON() === last) return item.key.range?.[0];
    }
  }
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNode(node) ? node.range?.[0] : undefined;
}

/** The parser recovers from its own stack overflow and reports it as if it were a mistake in the text. */
function readable(message: string): string {
  const first = message.split('\n', 1)[0] ?? message;
  return first.startsWith('Maximum call stack') ? 'nested too deeply' : first;
}

function tooLarge(file: string): AgentError {
  return invalid(file, `expected at most ${MAX_FILE_BYTES / 1024 / 1024} MiB; split the file`);
}

function invalid(file: string, message: string, cause?: unknown): AgentError {
  return new AgentError('resource.invalid', { problem: `${nameOf(file)}: ${message}` }, { cause });
}

function nameOf(file: string): string {
  return file === '-' ? 'standard input' : file;
}
