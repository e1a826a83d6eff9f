import { z } from 'zod';
import { built } from './kind.js';

const DEADLINE_MS = 30_000;
/** RFC 9110, 9.2.1: these ask for no change of state. */
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** RFC 9110, 5.6.2. */
const token = z.string('text').regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/, 'a token of HTTP');

export const runWebRequest = built({
  type: 'RUN_WEB_REQUEST',
  // `allowInsecure` is ignored: TLS is always verified.
  schema: z.object({
    url: z.string('text').min(1, 'a URL').max(8_192, 'at most 8192 characters'),
    method: z
      .string('text')
      .regex(/^[A-Za-z]{0,32}$/, 'a method of HTTP')
      .default(''),
    postData: z.string('text').nullish(),
    headers: z.record(token, z.string('text').regex(/^[\t\x20-\x7e\x80-\uffff]*$/, 'text without control characters')).nullish(),
  }),
  scheduling: { lanes: [], slot: 'work', deadlineMs: DEADLINE_MS, repeat: 'never' },
  work({ url, method: asked, postData, headers }) {
    const method = asked === '' ? 'GET' : asked.toUpperCase();
    // Many senders fill every key: an empty text is no body.
    const body = postData === null || postData === '' ? undefined : postData;
    const plan = { do: 'web_request' as const, url, method, body, headers: headers ?? {}, timeoutMs: DEADLINE_MS };
    return READING.has(method) ? { plan, slot: 'read', repeat: 'read' } : { plan };
  },
});
