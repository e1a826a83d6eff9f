import { Composer, type Document, isScalar, LineCounter, Parser, visit } from 'yaml';
import { AgentError } from '../../domain/kernel/errors.js';

/** One document at a time: the syntax tree of a large file is many times its size. */
export function* composeDocuments(text: string, lines: LineCounter): Generator<Document.Parsed> {
  // Warnings are about tags that nobody resolves: what they stand for would be lost.
  const composer = new Composer({ lineCounter: lines, prettyErrors: false, schema: 'core', logLevel: 'silent' });
  yield* composer.compose(new Parser(lines.addNewLine).parse(text));
}

/**
 * The documents of a text in YAML 1.2, of which JSON is a part, as plain data that JSON can hold. An empty one has the value `null`.
 * @throws AgentError `resource.invalid` with file and line
 */
export function* parseManifest(file: string, text: string): Generator<{ readonly number: number; readonly value: unknown }> {
  const lines = new LineCounter();
  let number = 0;
  try {
    for (const document of composeDocuments(text, lines)) {
      number++;
      const problem = problemOf(document);
      if (problem !== undefined) throw invalid(`${nameOf(file)}:${lines.linePos(problem.offset).line}`, problem.message);
      yield { number, value: document.toJS({ maxAliasCount: 0 }) ?? null };
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw invalid(`${nameOf(file)}: document ${number || 1}`, whyUnreadable(error), error);
  }
}

/** `-` is standard input. */
export function nameOf(file: string): string {
  return file === '-' ? 'standard input' : file;
}

/** Of what JSON can hold. The parser knows more: a `!!binary` would become a Buffer. */
const plainTags = ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => `tag:yaml.org,2002:${name}`);

function isPlain(tag: string | undefined): boolean {
  return tag === undefined || tag === '!' || plainTags.includes(tag);
}

interface Fault {
  readonly offset: number;
  readonly message: string;
}

function problemOf(document: Document.Parsed): Fault | undefined {
  const [first] = [...document.errors, ...document.warnings];
  if (first !== undefined) return { offset: first.pos[0], message: readable(first.message) };
  let fault: Fault | undefined;
  const found = (offset: number | undefined, message: string) => {
    fault = { offset: offset ?? 0, message };
    return visit.BREAK;
  };
  visit(document, {
    Alias: (_, { source, range }) => found(range?.[0], `alias *${source} is not allowed: write the value out`),
    Collection: (_, { tag, range }) => (isPlain(tag) ? undefined : found(range?.[0], `tag ${tag} is not allowed`)),
    Scalar: (_, { value, tag, range, source }) => {
      if (!isPlain(tag)) return found(range?.[0], `tag ${tag} is not allowed`);
      // JSON has none of them; on the way to the daemon they would become null.
      if (typeof value !== 'number' || Number.isFinite(value)) return undefined;
      return found(range?.[0], `expected a number or a text in quotes, found ${source ?? value}`);
    },
    Pair: (_, { key }) => {
      if (isScalar(key) || key === null) return undefined;
      return found(rangeOf(key), 'expected a plain key, found a list or a mapping');
    },
  });
  return fault;
}

function rangeOf(node: unknown): number | undefined {
  const range: unknown = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : undefined;
}

function whyUnreadable(error: unknown): string {
  if (error instanceof RangeError) return 'nested too deeply';
  return error instanceof Error ? readable(error.message) : String(error);
}

/** The parser recovers from its own stack overflow and reports it as if it were a mistake in the text. */
function readable(message: string): string {
  const first = message.split('\n', 1)[0] ?? message;
  return first.startsWith('Maximum call stack') ? 'nested too deeply' : first;
}

function invalid(where: string, message: string, cause?: unknown): AgentError {
  return new AgentError('resource.invalid', { problem: `${where}: ${message}` }, { cause });
}
