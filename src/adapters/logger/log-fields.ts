import { AgentError } from '../../domain/kernel/errors.js';
import type { LogFields } from '../../ports/logger.js';

/** By the field's name: a value with such a name is never worth the risk. */
const secret = /pass(word|wd|phrase)|secret|token|credential|authorization|cookie|api[-_]?key|private[-_]?key/i;

const deepest = 6;
/** A line is for reading; what is longer belongs elsewhere. */
const longestText = 16_384;
const longestList = 100;

/** Keys of the line itself; a second one of the same name would hide the first. */
const reserved: ReadonlySet<string> = new Set(['level', 'time', 'msg']);

/** Plain JSON of `fields`: no secrets, no cycles, nothing endless, and never an exception. */
export function plainFields(fields: LogFields): Readonly<Record<string, unknown>> {
  const entries = safeEntries(fields).map(([key, value]) => [reserved.has(key) ? `${key}_` : key, value] as const);
  return plainEntries(entries, 0, new Set());
}

function plain(value: unknown, depth: number, above: ReadonlySet<unknown>): unknown {
  switch (typeof value) {
    case 'string':
      return value.length <= longestText ? value : `${value.slice(0, longestText)}… (${value.length} characters)`;
    case 'bigint':
      return String(value);
    case 'function':
    case 'symbol':
      return undefined;
    case 'object':
      return value === null ? null : plainObject(value, depth, above);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    default:
      return value;
  }
}

function plainObject(value: object, depth: number, above: ReadonlySet<unknown>): unknown {
  if (above.has(value)) return '[circular]';
  if (depth >= deepest) return '[deeper]';
  const within = new Set([...above, value]);
  if (value instanceof Error) return plainEntries(entriesOfError(value), depth, within);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (value instanceof Map)
    return plainEntries(
      [...value].map(([key, each]) => [String(key), each]),
      depth,
      within,
    );
  if (Array.isArray(value) || value instanceof Set) {
    const items = [...value];
    const shown = items.slice(0, longestList).map((each) => plain(each, depth + 1, within));
    return items.length <= longestList ? shown : [...shown, `… (${items.length} items)`];
  }
  return plainEntries(safeEntries(value), depth, within);
}

function plainEntries(entries: readonly (readonly [string, unknown])[], depth: number, within: ReadonlySet<unknown>) {
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      value !== undefined && secret.test(key) ? '[redacted]' : plain(value, depth + 1, within),
    ]),
  );
}

function entriesOfError(error: Error): readonly (readonly [string, unknown])[] {
  const { name, message, stack, cause, ...rest } = error;
  if (error instanceof AgentError && error.kind !== 'internal') return entriesOfCondition(error);
  return [
    ['type', name],
    ['message', message],
    ...Object.entries(rest),
    ...(cause === undefined ? [] : [['cause', cause] as const]),
    ['stack', stack],
  ];
}

/** Of something that happens, such as a control plane that is away: where in the program it was noticed says nothing to anybody. */
function entriesOfCondition({ name, message, code, facts, cause }: AgentError): readonly (readonly [string, unknown])[] {
  const { problem: _, ...others } = facts;
  const reason = cause instanceof Error ? { type: cause.name, message: cause.message, ...codeOf(cause) } : cause;
  return [
    ['type', name],
    ['message', message],
    ['code', code],
    ...(Object.keys(others).length === 0 ? [] : [['facts', others] as const]),
    ...(reason === undefined ? [] : [['cause', reason] as const]),
  ];
}

function codeOf(error: object): { readonly code?: unknown } {
  return 'code' in error ? { code: error.code } : {};
}

/** A getter may throw, and a log line must not. */
function safeEntries(value: object): readonly (readonly [string, unknown])[] {
  try {
    return Object.entries(value);
  } catch {
    return [['unreadable', true]];
  }
}
