/** Control characters, separators of lines, and what turns the direction of writing round. */
const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/**
 * What comes from elsewhere, on a line for people: it can neither move the cursor nor begin a line of its own, nor show itself as what it
 * is not. Each such character is written as `\u001b`; inside of a JSON string that is the same text.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** As `printable`, for text of several lines: newlines and tabs stay. */
export function printableLines(text: string): string {
  return text.replace(UNPRINTABLE, (character) => (character === '\n' || character === '\t' ? character : escaped(character)));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
