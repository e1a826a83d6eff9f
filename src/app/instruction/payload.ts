import { parseExact } from '../../domain/kernel/exact-json.js';

/** What a payload may be. */
interface Limits {
  readonly type: string;
  readonly mayBeEmpty: boolean;
  readonly maxPayloadBytes: number;
}

export type Decoded = { readonly json: unknown } | { readonly problem: string };

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The JSON in an instruction's payload: standard padded base64 of UTF-8. Its length is checked first (engine.md I4). */
export function decodePayload(jsonB64: string, { type, mayBeEmpty, maxPayloadBytes }: Limits): Decoded {
  if (jsonB64 === '') return mayBeEmpty ? { json: {} } : { problem: 'the payload is empty' };
  const most = Math.ceil(maxPayloadBytes / 3) * 4;
  if (jsonB64.length > most) {
    const bytes = Math.floor(jsonB64.length / 4) * 3;
    return { problem: `the payload has about ${bytes} bytes, ${type} takes ${maxPayloadBytes}` };
  }
  if (!BASE64.test(jsonB64)) return { problem: 'the payload is no padded base64' };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(jsonB64, 'base64'));
    return { json: parseExact(text) };
  } catch (error) {
    return { problem: error instanceof SyntaxError ? 'the payload is no JSON' : 'the payload is no UTF-8' };
  }
}
