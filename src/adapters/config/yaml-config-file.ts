import { type Alias, type Document, isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { ConfigFile, ConfigPath } from '../../domain/config/problem.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { ConfigSource } from '../../ports/config/config-source.js';
import { readTextFile } from '../files/text-file.js';

const greatestSize = 1024 * 1024;
/** One missing bracket can be a fault on every line after it. */
const mostFaults = 20;
/** What the parser makes of brackets by the thousand: it recovers and goes on. */
const tooDeep = 'Maximum call stack size exceeded';

interface Fault {
  readonly line?: number | undefined;
  readonly problem: string;
}

/** A file in YAML 1.2, of one document, without aliases or doubled keys. */
export class YamlConfigFile implements ConfigSource {
  readonly #path: string;
  readonly #required: boolean;

  /** `required`: the file was asked for by name, so it is a problem when there is none. */
  constructor(path: string, { required }: { readonly required: boolean }) {
    this.#path = path;
    this.#required = required;
  }

  async read(options: CallOptions): Promise<ConfigFile | undefined> {
    const file = await readTextFile(this.#path, greatestSize, options);
    switch (file.found) {
      case 'nothing':
        return this.#required ? unusable(this.#path, { problem: 'there is no such file' }) : undefined;
      case 'unusable':
        return unusable(this.#path, file);
      case 'text':
        return parseConfig(this.#path, file.text);
    }
  }
}

export function parseConfig(file: string, text: string): ConfigFile {
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' });
    const faults = faultsOf(document, lines);
    if (faults.some(({ problem }) => problem === tooDeep)) return unusable(file, { problem: 'is nested too deeply' });
    if (faults.length > 0) return unusable(file, ...faults.slice(0, mostFaults));
    // No alias is left, but a limit of 0 says so to the library as well.
    return { file, value: document.toJS({ maxAliasCount: 0 }), problems: [], lineOf: (path) => lineOf(document, lines, path) };
  } catch (error) {
    if (error instanceof RangeError) return unusable(file, { problem: 'is nested too deeply' });
    throw error;
  }
}

function faultsOf(document: Document, lines: LineCounter): readonly Fault[] {
  const faults: Fault[] = [...document.errors, ...document.warnings].map(({ pos, message }) => ({
    line: lines.linePos(pos[0]).line,
    problem: message,
  }));
  visit(document, {
    Alias: (_, node: Alias) => {
      faults.push({ line: lineAt(lines, node.range?.[0]), problem: `alias *${node.source} is not allowed: write the value out` });
    },
  });
  return faults.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

function unusable(file: string, ...faults: readonly Fault[]): ConfigFile {
  const problems = faults.map(({ line, problem }) => ({ origin: { from: 'file' as const, file, line }, path: '', problem }));
  return { file, value: undefined, problems, lineOf: () => undefined };
}

function lineOf(document: Document, lines: LineCounter, path: ConfigPath): number | undefined {
  let node: unknown = document.contents;
  let line: number | undefined;
  for (const key of path) {
    if (!isMap(node)) break;
    const pair = node.items.find((each) => isScalar(each.key) && String(each.key.value) === key);
    if (pair === undefined) break;
    line = isScalar(pair.key) ? lineAt(lines, pair.key.range?.[0]) : undefined;
    node = pair.value;
  }
  return line;
}

function lineAt(lines: LineCounter, offset: number | undefined): number | undefined {
  return offset === undefined ? undefined : lines.linePos(offset).line;
}
