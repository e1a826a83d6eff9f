import { parseAllDocuments } from 'yaml';

/** Kubernetes' own parser takes YAML 1.1; aliases there are few, and a bomb of them is refused. */
const MOST_ALIASES = 100;

/** The documents of a manifest for Kubernetes as plain data; an empty one is null. @throws Error that says where the text is wrong */
export function parseYamlDocuments(text: string): readonly unknown[] {
  const documents = parseAllDocuments(text, { version: '1.1', logLevel: 'silent' });
  if (!Array.isArray(documents)) return [];
  return documents.map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new Error(error.message.split('\n', 1)[0]);
    return document.toJS({ maxAliasCount: MOST_ALIASES }) ?? null;
  });
}
