/** Code points that are joined at once: more arguments than that can overflow the stack. */
const CHUNK = 8_192;

/** Lone surrogates become U+FFFD, as `toWellFormed` makes them. */
export function encodeUtf8(text: string): Uint8Array {
  const wellFormed = text.toWellFormed();
  const bytes = new Uint8Array(wellFormed.length * 3);
  let at = 0;
  for (let index = 0; index < wellFormed.length; index++) {
    const point = wellFormed.codePointAt(index) ?? 0;
    if (point > 0xffff) index++;
    if (point < 0x80) {
      bytes[at++] = point;
      continue;
    }
    const tails = point < 0x800 ? 1 : point < 0x1_0000 ? 2 : 3;
    bytes[at++] = ((0xff00 >> (tails + 1)) & 0xff) | (point >> (6 * tails));
    for (let tail = tails - 1; tail >= 0; tail--) bytes[at++] = 0x80 | ((point >> (6 * tail)) & 0x3f);
  }
  return bytes.subarray(0, at);
}

/** Undefined for what is not UTF-8 (RFC 3629): overlong forms, surrogates, points above U+10FFFF and cut sequences are none. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  const parts: string[] = [];
  let points: number[] = [];
  for (let index = 0; index < bytes.length; ) {
    const point = pointAt(bytes, index);
    if (point === undefined) return undefined;
    index += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x1_0000 ? 3 : 4;
    points.push(point);
    if (points.length < CHUNK) continue;
    parts.push(String.fromCodePoint(...points));
    points = [];
  }
  parts.push(String.fromCodePoint(...points));
  return parts.join('');
}

function pointAt(bytes: Uint8Array, index: number): number | undefined {
  const first = bytes[index] ?? 0;
  if (first < 0x80) return first;
  const tails = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4) return undefined;
  let point = first & (0x3f >> tails);
  for (let tail = 1; tail <= tails; tail++) {
    const byte = bytes[index + tail];
    if (byte === undefined || (byte & 0xc0) !== 0x80) return undefined;
    point = (point << 6) | (byte & 0x3f);
  }
  const least = tails === 1 ? 0x80 : tails === 2 ? 0x800 : 0x1_0000;
  const isSurrogate = point >= 0xd800 && point <= 0xdfff;
  return point < least || isSurrogate || point > 0x10_ffff ? undefined : point;
}
