import { INLINE_BYTES } from './model.js';

/** Of a text's UTF-16 units: at most 384 KiB as UTF-8 and 512 KiB when that is sealed, so that a commit takes it. */
export const PIECE_UNITS = 128 * 1024;

/** `text` in parts that are each well-formed if it is. An empty text has one. */
export function pieces(text: string): readonly string[] {
  const found: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = boundary(text, start + PIECE_UNITS);
    found.push(text.slice(start, end));
    start = end;
  }
  return found.length === 0 ? [''] : found;
}

/** Not between the two halves of a character. */
function boundary(text: string, at: number): number {
  const before = text.charCodeAt(at - 1);
  return at < text.length && before >= 0xd800 && before <= 0xdbff ? at - 1 : at;
}

/** Consecutive pieces, as many as one commit takes; `bytesOf` says how long one is as UTF-8. */
export function commitGroups(all: readonly string[], bytesOf: (text: string) => number): readonly (readonly string[])[] {
  const groups: string[][] = [[]];
  let bytes = 0;
  for (const piece of all) {
    const more = bytesOf(piece);
    if (bytes > 0 && bytes + more > INLINE_BYTES) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)?.push(piece);
    bytes += more;
  }
  return groups;
}
