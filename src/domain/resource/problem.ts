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
  readonly keys?: readonly string[];
}

/** Enough to mend a manifest; a file with thousands of mistakes has one cause. */
const MAX_PROBLEMS = 20;
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
  return [{ path: formatPath(issue.path), message: `expected ${issue.message}, found ${found(valueAt(value, issue.path))}` }];
}

export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (current, part) =>
      typeof current === 'object' && current !== null ? (current as Readonly<Record<PropertyKey, unknown>>)[part] : undefined,
    value,
  );
}

function found(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'a mapping';
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= MAX_FOUND ? text : `${text.slice(0, MAX_FOUND)}… (${text.length} characters)`;
}
