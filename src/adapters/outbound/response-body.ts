import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { AgentError } from '../../domain/kernel/errors.js';
import { errnoOf } from '../files/errno.js';

/** What `readBody` undoes. Others need not be asked for: these two every server knows. */
export const ACCEPTED_CODINGS = 'gzip, br';

const decoders = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  br: promisify(brotliDecompress),
} as const;

/** What a coding may add to content that it cannot make smaller: 5 bytes in each 16 KiB, and headers. */
const overheadOf = (bytes: number) => 1024 + bytes / 1024;

/**
 * The whole content, decoded.
 * @throws AgentError `outbound.too_large` as soon as more than `maxBytes` have come, encoded or decoded; `outbound.failed` for a coding
 * that is damaged or unknown
 */
export async function readBody(chunks: AsyncIterable<Uint8Array>, coding: string, maxBytes: number): Promise<Uint8Array> {
  const decode = decoderOf(coding);
  const limit = decode === undefined ? maxBytes : maxBytes + overheadOf(maxBytes);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > limit) throw tooLarge(maxBytes);
    parts.push(chunk);
  }
  const raw = Buffer.concat(parts, length);
  // The answer to HEAD names the coding of a body that does not come.
  if (decode === undefined || length === 0) return raw;
  try {
    // zlib wants a limit of at least 1.
    const content = await decode(raw, { maxOutputLength: Math.max(1, maxBytes) });
    if (content.length > maxBytes) throw tooLarge(maxBytes);
    return content;
  } catch (cause) {
    if (cause instanceof AgentError) throw cause;
    if (errnoOf(cause) === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes);
    throw new AgentError('outbound.failed', { problem: `the content is no whole ${coding}` }, { cause });
  }
}

/** Undefined for none at all. One only: each more in a chain of them multiplies what a small answer costs. */
function decoderOf(coding: string): (typeof decoders)[keyof typeof decoders] | undefined {
  const name = coding.trim().toLowerCase();
  if (name === '' || name === 'identity') return undefined;
  if (name === 'gzip' || name === 'x-gzip' || name === 'br') return decoders[name];
  throw new AgentError('outbound.failed', { problem: `the content has the coding ${JSON.stringify(name.slice(0, 60))}` });
}

function tooLarge(maxBytes: number): AgentError {
  return new AgentError('outbound.too_large', { problem: `the answer has more than ${maxBytes} bytes` });
}
