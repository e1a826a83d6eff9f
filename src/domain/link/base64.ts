const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const NO_DIGIT = 255;

const digits = new Uint8Array(128).fill(NO_DIGIT);
for (let value = 0; value < 64; value++) digits[ALPHABET.charCodeAt(value)] = value;

/** Bytes that `text` stands for, by its length alone; undefined when that is no multiple of 4. */
export function decodedLength(text: string): number | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

/**
 * Standard alphabet with padding (RFC 4648 section 4) and nothing else: undefined for other characters, line ends, missing padding and
 * for bits behind the last byte, so that a value has one spelling.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  const length = decodedLength(text);
  if (length === undefined) return undefined;
  const bytes = new Uint8Array(length);
  const end = length === (text.length / 4) * 3 ? text.length : text.length - 4;
  let at = 0;
  for (let index = 0; index < end; index += 4) {
    const [a, b, c, d] = [digitAt(text, index), digitAt(text, index + 1), digitAt(text, index + 2), digitAt(text, index + 3)];
    if ((a | b | c | d) > 63) return undefined;
    bytes[at++] = (a << 2) | (b >> 4);
    bytes[at++] = ((b & 15) << 4) | (c >> 2);
    bytes[at++] = ((c & 3) << 6) | d;
  }
  return end === text.length || decodeTail(text, bytes, at) ? bytes : undefined;
}

/** The last four characters, of which one or two are padding. */
function decodeTail(text: string, bytes: Uint8Array, at: number): boolean {
  const start = text.length - 4;
  const [a, b] = [digitAt(text, start), digitAt(text, start + 1)];
  const c = bytes.length - at === 2 ? digitAt(text, start + 2) : 0;
  if ((a | b | c) > 63) return false;
  bytes[at] = (a << 2) | (b >> 4);
  if (bytes.length - at === 1) return (b & 15) === 0;
  bytes[at + 1] = ((b & 15) << 4) | (c >> 2);
  return (c & 3) === 0;
}

function digitAt(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code < 128 ? (digits[code] ?? NO_DIGIT) : NO_DIGIT;
}

export function encodeBase64(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let index = 0; index < bytes.length; index += 3) {
    const left = bytes.length - index;
    const [a = 0, b = 0, c = 0] = [bytes[index], bytes[index + 1], bytes[index + 2]];
    const digit = (value: number) => ALPHABET.charAt(value & 63);
    parts.push(
      digit(a >> 2) + digit((a << 4) | (b >> 4)) + (left > 1 ? digit((b << 2) | (c >> 6)) : '=') + (left > 2 ? digit(c) : '='),
    );
  }
  return parts.join('');
}
