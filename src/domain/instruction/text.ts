/**
 * What a reply may hold of text: `jsonB64` is base64 (4/3), and 4 KiB are for the envelope. The sizes are those of the encoded message
 * (engine.md A15): 2 MiB of NUL bytes are 12 MiB in JSON.
 */
export const MAX_REPLY_B64 = 12 * 1024 * 1024 - 4 * 1024;
export const MAX_REPLY_JSON = (MAX_REPLY_B64 / 4) * 3;
/** Other members of a reply, and the markers. */
const MARGIN = 4 * 1024;
export const MAX_TEXTS_JSON = MAX_REPLY_JSON - MARGIN;

export const MAX_ERROR_BYTES = 64 * 1024;

/** Bytes that one character (a code point) takes in JSON text in UTF-8. */
function jsonBytesOf(code: number): number {
  // RFC 8259, 7: `"` and `\`, and the five with a short escape; other controls and lone surrogates are `\u00xx`.
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x20) return code === 8 || code === 9 || code === 10 || code === 12 || code === 13 ? 2 : 6;
  if (code >= 0xd800 && code <= 0xdfff) return 6;
  return utf8BytesOf(code);
}

function utf8BytesOf(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

interface Measured {
  /** Of the whole text. */
  readonly bytes: number;
  /** How many UTF-16 units of it fit. */
  readonly fits: number;
}

function measure(text: string, limit: number, bytesOf: (code: number) => number): Measured {
  let bytes = 0;
  let fits = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    at += code > 0xffff ? 2 : 1;
    bytes += bytesOf(code);
    if (bytes <= limit) fits = at;
  }
  return { bytes, fits };
}

/** `text` within `limit` bytes of JSON, with a marker where something is missing; `dropped` bytes were lost before. */
export function cutForJson(text: string, limit: number, dropped = 0): string {
  const { bytes, fits } = measure(text, limit, jsonBytesOf);
  const lost = dropped + (bytes > limit ? utf8Bytes(text.slice(fits)) : 0);
  return lost === 0 ? text : `${text.slice(0, fits)}${marker(lost)}`;
}

export function jsonBytes(text: string): number {
  return measure(text, 0, jsonBytesOf).bytes;
}

export function utf8Bytes(text: string): number {
  return measure(text, 0, utf8BytesOf).bytes;
}

interface Stream {
  readonly text: string;
  readonly dropped: number;
}

/** Both within `limit` together: what one does not need the other may have, and each is sure of half. */
export function cutTwoForJson(a: Stream, b: Stream, limit = MAX_TEXTS_JSON): readonly [string, string] {
  // No character takes more than 6 bytes a unit: short output is not looked at.
  if ((a.text.length + b.text.length) * 6 <= limit && a.dropped + b.dropped === 0) return [a.text, b.text];
  const half = Math.floor(limit / 2);
  const [first, second] = [jsonBytes(a.text), jsonBytes(b.text)];
  const forA = Math.max(half, limit - second);
  const forB = Math.max(half, limit - first);
  return [cutForJson(a.text, forA, a.dropped), cutForJson(b.text, forB, b.dropped)];
}

/** Error text goes as it is into a field that must be good UTF-8: a bad one would end the stream, and at each re-send again. */
export function errorText(text: string): string {
  const good = text.toWellFormed();
  const { bytes, fits } = measure(good, MAX_ERROR_BYTES - 64, utf8BytesOf);
  return bytes <= MAX_ERROR_BYTES ? good : `${good.slice(0, fits)}${marker(utf8Bytes(good.slice(fits)))}`;
}

/** At most `limit` bytes of UTF-8, whole characters, with `…` where something is missing. */
export function cutUtf8(text: string, limit: number): string {
  const good = text.toWellFormed();
  const { bytes, fits } = measure(good, limit - utf8Bytes(MISSING), utf8BytesOf);
  return bytes <= limit ? good : `${good.slice(0, fits)}${MISSING}`;
}

const MISSING = '…';

function marker(lost: number): string {
  return `\n[cut here: ${lost} bytes more]`;
}
