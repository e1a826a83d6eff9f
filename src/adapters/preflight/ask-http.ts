import { once } from 'node:events';
import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import type { Answer } from '../../domain/preflight/model.js';

const LIMIT_MS = 4_000;
const BEGIN_BYTES = 1_024;

export interface HttpAsk {
  readonly url: string;
  /** Milliseconds since the epoch, when the answer comes. */
  readonly now: () => number;
}

/**
 * One GET, no redirect followed, no proxy; of the content only the beginning is read. Never rejects. Not by fetch, which refuses the ports
 * of its list (Fetch Standard, "port blocking"), 10080 among them.
 */
export async function askHttp({ url, now }: HttpAsk, signal: AbortSignal): Promise<Answer> {
  const limit = AbortSignal.timeout(LIMIT_MS);
  const options = { agent: false, signal: AbortSignal.any([signal, limit]) };
  try {
    const request = url.startsWith('https:') ? getHttps(url, options) : getHttp(url, options);
    // What comes after the answer was read, or given up, is of no interest.
    request.on('error', () => {});
    const response: IncomingMessage = (await once(request, 'response'))[0];
    const { statusCode = 0, headers } = response;
    const date = Date.parse(headers.date ?? '');
    const offsetMs = Number.isNaN(date) ? undefined : now() - date;
    return { url, status: statusCode, location: headers.location, begin: await beginning(response), offsetMs };
  } catch (error) {
    return { url, failed: limit.aborted ? `no answer within ${LIMIT_MS / 1000} s` : reasonOf(error) };
  }
}

async function beginning(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= BEGIN_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, BEGIN_BYTES).toString();
}

/** Of several addresses each has its own error. */
function reasonOf(error: unknown): string {
  const first = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}
