import { API_VERSION } from './model.js';
import { formatPath, found, type Problem } from './problem.js';

/** One object of a document: the document itself, or an element of a list. */
export interface ManifestObject {
  /** Where it stands in its document, `items[3]`; empty for the document itself. */
  readonly path: string;
  readonly value: unknown;
}

const LIST_KEYS = ['apiVersion', 'kind', 'items'];

/** What `get` prints can be applied: lists are taken apart, and what the daemon adds to an object is taken off. */
export function objectsOf(
  document: unknown,
): { readonly objects: readonly ManifestObject[] } | { readonly problems: readonly Problem[] } {
  const objects: ManifestObject[] = [];
  const problems: Problem[] = [];
  collect(document, [], objects, problems);
  return problems.length > 0 ? { problems } : { objects };
}

/** A path within the object as one within its document. */
export function pathInDocument(object: string, path: string): string {
  if (object === '' || path === '') return object + path;
  return path.startsWith('[') ? `${object}${path}` : `${object}.${path}`;
}

type Path = readonly (string | number)[];

function collect(value: unknown, path: Path, objects: ManifestObject[], problems: Problem[]): void {
  if (!isMapping(value) || value.kind !== 'List') {
    objects.push({ path: formatPath(path), value: withoutAdditions(value) });
    return;
  }
  const at = (key: string, message: string) => problems.push({ path: formatPath([...path, key]), message });
  const { apiVersion, items } = value;
  if (apiVersion !== API_VERSION) at('apiVersion', `expected ${API_VERSION}, found ${found(apiVersion)}`);
  for (const key of Object.keys(value)) {
    if (!LIST_KEYS.includes(key)) at(key, `unknown key; the keys here are ${LIST_KEYS.join(', ')}`);
  }
  if (!Array.isArray(items)) at('items', `expected a list of objects, found ${found(items)}`);
  else for (const [index, item] of items.entries()) collect(item, [...path, 'items', index], objects, problems);
}

/** Without `status`, `metadata.revision` and `metadata.source`, which say what became of an object and not what is wanted. */
function withoutAdditions(value: unknown): unknown {
  if (!isMapping(value)) return value;
  const { status: _, ...object } = value;
  if (!isMapping(object.metadata)) return object;
  const { revision: _revision, source: _source, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
