import { AgentError } from '../../domain/kernel/errors.js';

/** One request of the chain that redirects make. */
export interface Hop {
  readonly url: URL;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** Any other header may be a key to what it was meant for, whatever its name. */
const anyOrigin: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-language', 'content-type', 'user-agent']);

/** Those with which an answer says where to ask instead (RFC 9110, section 15.4). */
export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/**
 * Where `status` and `location` lead from `hop`, as a browser goes: 303 asks with GET, so do 301 and 302 after a POST.
 * @throws AgentError `outbound.failed` when that is no URL, `outbound.refused` when it leads from https to http
 */
export function follow({ url, method, headers, body }: Hop, status: number, location: string): Hop {
  if (!URL.canParse(location, url.href)) {
    throw new AgentError('outbound.failed', { problem: `${url.origin} redirects to what is no URL` });
  }
  const next = new URL(location, url);
  if (url.protocol === 'https:' && next.protocol === 'http:') {
    throw new AgentError('outbound.refused', { problem: `${url.origin} redirects from https to ${next.origin}` });
  }
  const turnsToGet = (status === 303 && method !== 'HEAD') || ((status === 301 || status === 302) && method === 'POST');
  const kept = Object.entries(headers).filter(
    ([name]) => (next.origin === url.origin || anyOrigin.has(name)) && !(turnsToGet && name.startsWith('content-')),
  );
  return {
    url: next,
    method: turnsToGet ? 'GET' : method,
    headers: Object.fromEntries(kept),
    body: turnsToGet ? undefined : body,
  };
}
