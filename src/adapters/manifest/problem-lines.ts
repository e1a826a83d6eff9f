import { type Document, isCollection, isNode, isPair, isScalar, LineCounter } from 'yaml';
import { composeDocuments } from './manifest-yaml.js';

/**
 * Finds the lines of a text's documents. Nothing is parsed before it is asked for, and problems in the order of their documents cost
 * one more pass over the text, however many they are.
 */
export class LineFinder {
  readonly #text: string;
  #lines = new LineCounter();
  #rest: Iterator<Document.Parsed> | undefined;
  #document: Document.Parsed | undefined;
  #number = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Line of `path` in the document, counted from 1, or of what should hold it; `undefined` when there is no such document. */
  lineOf(number: number, path: string): number | undefined {
    const document = this.#find(number);
    if (document === undefined) return undefined;
    const parts = splitPath(path);
    for (let length = parts.length; length >= 0; length--) {
      const offset = offsetOf(document, parts.slice(0, length));
      if (offset !== undefined) return this.#lines.linePos(offset).line;
    }
    return undefined;
  }

  #find(number: number): Document.Parsed | undefined {
    if (this.#rest === undefined || number < this.#number) {
      this.#lines = new LineCounter();
      this.#rest = composeDocuments(this.#text, this.#lines);
      this.#number = 0;
      this.#document = undefined;
    }
    while (this.#number < number) {
      const next = this.#rest.next();
      if (next.done === true) return undefined;
      this.#document = next.value;
      this.#number++;
    }
    return this.#document;
  }
}

/** `metadata.labels["example.com/tier"]`, `spec.ports[0].port`: see `formatPath`. What cannot be read ends the path. */
function splitPath(path: string): readonly string[] {
  const parts: string[] = [];
  for (const [, quoted, index, plain] of path.matchAll(/\[("(?:[^"\\]|\\.)*")[^\]]*\]|\[(\d+)\]|([^.[\]]+)/g)) {
    if (quoted !== undefined) parts.push(String(JSON.parse(quoted)));
    else parts.push(index ?? plain ?? '');
  }
  return parts;
}

/** Of the key where there is one: that is where people look. */
function offsetOf(document: Document.Parsed, path: readonly string[]): number | undefined {
  let node: unknown = document.contents;
  let offset = isNode(node) ? node.range?.[0] : undefined;
  for (const part of path) {
    if (!isCollection(node)) return undefined;
    const item: unknown = node.items.find((each) => isPair(each) && isScalar(each.key) && String(each.key.value) === part);
    if (isPair(item)) {
      offset = isNode(item.key) ? item.key.range?.[0] : undefined;
      node = item.value;
    } else {
      node = node.get(part, true);
      if (!isNode(node)) return undefined;
      offset = node.range?.[0];
    }
  }
  return offset;
}
