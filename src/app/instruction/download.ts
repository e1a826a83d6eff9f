import { AgentError } from '../../domain/kernel/errors.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { WebClient, WebRequest } from '../../ports/outbound/web-client.js';

const FETCH_MS = 30_000;

/** The body of a page that answers with success. @throws AgentError `outbound.*` */
export async function download(
  web: WebClient,
  { url, guarded, maxBytes }: Pick<WebRequest, 'url' | 'guarded' | 'maxBytes'>,
  { signal }: CallOptions,
): Promise<Uint8Array> {
  const request = { url, method: 'GET', headers: {}, body: undefined, timeoutMs: FETCH_MS, guarded, maxBytes };
  const { status, body } = await web.request(request, { signal });
  if (status >= 200 && status <= 299) return body;
  throw new AgentError('outbound.failed', { problem: `${url} answered with status ${status}` });
}
