import { decodeBase64, decodedLength, encodeBase64 } from './base64.js';
import { decodeUtf8, encodeUtf8 } from './utf8.js';

/** What `jsonB64` holds, or why it holds nothing. */
export type Payload = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/** Of heartbeats, their answers and other answers of one value. */
export const SMALL_PAYLOAD_BYTES = 256 * 1024;

/** Base64 of the JSON of `value`, as it stands in a message. `value` holds what JSON can say. */
export function payloadOf(value: unknown): string {
  return encodeBase64(encodeUtf8(JSON.stringify(value)));
}

/**
 * Strict: standard base64 with padding, UTF-8, JSON; more than `limit` bytes are refused before anything is decoded. `parse` throws for what
 * is no JSON.
 */
export function readPayload(jsonB64: string, limit: number, parse: (text: string) => unknown = JSON.parse): Payload {
  if ((decodedLength(jsonB64) ?? 0) > limit) return { ok: false, problem: `larger than ${limit} bytes` };
  const bytes = decodeBase64(jsonB64);
  if (bytes === undefined) return { ok: false, problem: 'no base64' };
  const text = decodeUtf8(bytes);
  if (text === undefined) return { ok: false, problem: 'no UTF-8' };
  try {
    return { ok: true, value: parse(text) };
  } catch {
    return { ok: false, problem: 'no JSON' };
  }
}
