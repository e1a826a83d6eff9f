import { AgentError } from '../../domain/kernel/errors.js';
import { DEFAULT_NAMESPACE, type Kind, type ResourceRef } from '../../domain/resource/model.js';
import { labelSelector, parseKind } from '../../domain/resource/selector.js';
import type { ManifestDocument } from '../../ports/driving/resources.js';
import { UsageError } from './context.js';

export interface Selection {
  readonly namespace: string;
  readonly allNamespaces: boolean;
  readonly selector?: string;
}

/** `service hello`, `service/hello`, `services`, `all`, or nothing, as a selector of the admin API. @throws UsageError */
export function selectionOf(args: readonly string[], { namespace, allNamespaces, selector = '' }: Selection) {
  const [first = 'all', second] = args;
  const { kind: kindText, name } = splitRef(first);
  if (name !== undefined && second !== undefined) throw new UsageError(`expected ${first} or a kind and a name, found both`);
  if (selector !== '') asUsage(() => labelSelector(selector));
  return {
    kind: kindText === 'all' ? '' : kindOf(kindText),
    namespace: allNamespaces ? '' : namespace,
    name: second ?? name ?? '',
    labels: selector,
  };
}

/** `service a b`, or `service/a endpoints/b`. @throws UsageError */
export function refsOfArgs(args: readonly string[], namespace: string): readonly ResourceRef[] {
  const [first, ...rest] = args;
  if (first === undefined) throw new UsageError('expected what to delete: service NAME, or -f FILE');
  const texts = first.includes('/') ? args : rest.map((name) => `${first}/${name}`);
  if (texts.length === 0) throw new UsageError(`expected a name after ${first}`);
  return texts.map((text) => {
    const { kind, name } = splitRef(text);
    if (name === undefined) throw new UsageError(`expected KIND/NAME, found ${text}`);
    return { kind: kindOf(kind), namespace, name };
  });
}

/** What a document names, whether or not the rest of it is right. @throws AgentError `resource.invalid` */
export function refOfDocument({ file, number, value }: ManifestDocument): ResourceRef {
  const invalid = (problem: string) => new AgentError('resource.invalid', { problem: `${file}: document ${number}: ${problem}` });
  const { kind, metadata } = asRecord(value);
  const { name, namespace = DEFAULT_NAMESPACE } = asRecord(metadata);
  if (typeof kind !== 'string' || typeof name !== 'string' || typeof namespace !== 'string') {
    throw invalid('expected kind, metadata.name and, if any, metadata.namespace as text');
  }
  return { kind: parseKind(kind), namespace, name };
}

function splitRef(text: string): { readonly kind: string; readonly name: string | undefined } {
  const [kind = '', name, ...rest] = text.split('/');
  if (name === '' || rest.length > 0) throw new UsageError(`expected KIND/NAME, found ${text}`);
  return { kind, name };
}

function kindOf(text: string): Kind {
  return asUsage(() => parseKind(text));
}

/** What somebody typed is no manifest to mend. */
function asUsage<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof AgentError ? new UsageError(error.facts.problem ?? error.message, { cause: error }) : error;
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
