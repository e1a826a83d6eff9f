/** Parses YAML. @throws Error that says where it is wrong */
export type ParseYaml = (text: string) => readonly unknown[];

/** More are no custom resource, and their lanes would be a table. */
const MOST_DOCUMENTS = 256;
const GENERATED = 'an object with metadata.generateName is another one each time: give it a name';

export interface ReadDocuments {
  /** `cr/<namespace>/<name>` of each, or the whole family where an object is outside of a namespace of its own name. */
  readonly lanes: readonly string[];
}

/** A larger text takes a second and more to parse, in which nothing else is done: it is taken for one that touches everything. */
const MOST_PARSED = 512 * 1024;

/** What is to be applied, as far as its order among others is concerned. A problem is a text. */
export function readDocuments(yaml: string, parse: ParseYaml): ReadDocuments | string {
  if (yaml.length > MOST_PARSED) return /^\s*generateName\s*:/m.test(yaml) ? GENERATED : { lanes: [EVERY_CR] };
  let documents: readonly unknown[];
  try {
    documents = parse(yaml).filter((document) => document !== null);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (documents.length === 0) return 'there is nothing in it';
  if (documents.length > MOST_DOCUMENTS) return `it has ${documents.length} documents, ${MOST_DOCUMENTS} are taken`;
  const lanes = new Set<string>();
  for (const [index, document] of documents.entries()) {
    const lane = laneOf(document);
    if (lane.problem !== undefined) return `document ${index + 1}: ${lane.problem}`;
    lanes.add(lane.lane);
  }
  // One outside makes it wide: kubectl applies all of them in one go.
  return { lanes: lanes.has(EVERY_CR) ? [EVERY_CR] : [...lanes] };
}

export const EVERY_CR = 'cr/*';

/** Our own resources stand in a namespace of their name. */
export function crLane(namespace: string, name: string): string {
  return `cr/${namespace}/${name}`;
}

function laneOf(document: unknown): { readonly lane: string; readonly problem?: undefined } | { readonly problem: string } {
  const { metadata, kind, apiVersion } = record(document);
  const { name, namespace, generateName } = record(metadata);
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') return { problem: 'it has no apiVersion and kind' };
  if (generateName !== undefined) return { problem: GENERATED };
  if (typeof name !== 'string' || typeof namespace !== 'string' || name !== namespace) return { lane: EVERY_CR };
  return { lane: crLane(namespace, name) };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {};
}
