import { MAX_PROBLEMS } from '../kernel/limits.js';

/** One thing that is wrong with a document. */
export interface Problem {
  /** `spec.ports[0].port`; empty for the document itself. */
  readonly path: string;
  /** A sentence without a full stop: what was expected and what was found. */
  readonly message: string;
}

interface Issue {
  readonly code?: string | undefined;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

const MAX_FOUND = 60;

/** Issues of the schemas, whose messages are what was expected, as problems that also say what was found. */
export function problemsOf(issues: readonly Issue[], value: unknown): readonly Problem[] {
  return issues.flatMap((issue) => problemOf(issue, value)).slice(0, MAX_PROBLEMS);
}

function problemOf(issue: Issue, value: unknown): readonly Problem[] {
  if (issue.code === 'unrecognized_keys') {
    const unknown: [string, string][] = JSON.parse(issue.message);
    return unknown.map(([key, message]) => ({ path: formatPath([...issue.path, key]), message }));
  }
  const message =
    issue.params?.sentence === true ? issue.message : `expected ${issue.message}, found ${found(valueAt(value, issue.path))}`;
  return [{ path: formatPath(issue.path), message }];
}

/** Keys that are no plain words are quoted, `metadata.labels["example.com/tier"]`, so that a path reads in one way. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    const key = String(part);
    if (!/^[A-Za-z0-9_-]{1,63}$/.test(key)) return `${text}[${quoted(key)}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (current, part) =>
      typeof current === 'object' && current !== null && Object.hasOwn(current, part)
        ? (current as Readonly<Record<PropertyKey, unknown>>)[part]
        : undefined,
    value,
  );
}

/** A value for a message, short and on one line whatever it holds. */
export function found(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'a mapping';
  // JSON has no NaN and no infinity, YAML has.
  return typeof value === 'string' ? quoted(value) : String(value);
}

/** C1 controls (one starts a terminal's escape sequence), line separators and marks that turn the direction of text. */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function quoted(text: string): string {
  const escapeOf = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const json = JSON.stringify(text.slice(0, MAX_FOUND)).replace(UNPRINTABLE, escapeOf);
  return text.length <= MAX_FOUND ? json : `${json}… (${text.length} characters)`;
}
