import { once } from 'node:events';
import { connect } from 'node:http2';
import { formatHostPort, type HostPort } from '../../domain/kernel/network.js';
import type { Answer } from '../../domain/preflight/model.js';

/**
 * What the control plane answers to a request that it has no method for: the Date is wanted. Its certificate is not judged, for a wrong
 * clock is just what makes it look invalid, and no secret is sent. Rejects when nothing comes, and on abort.
 */
export async function askServerClock(server: HostPort, now: () => number, signal: AbortSignal): Promise<Answer> {
  const url = `https://${formatHostPort(server)}`;
  const session = connect(url, { rejectUnauthorized: false });
  try {
    // The session's own error comes to the stream too.
    session.on('error', () => {});
    const stream = session.request({ ':path': '/' });
    const closed = new AbortController();
    // A server that ends the connection is no error of the stream, which waits for ever then.
    session.once('close', () => closed.abort());
    const [headers] = await once(stream, 'response', { signal: AbortSignal.any([signal, closed.signal]) });
    const date = Date.parse(String(headers.date));
    return { url, status: Number(headers[':status']), begin: '', offsetMs: Number.isNaN(date) ? undefined : now() - date };
  } finally {
    session.destroy();
  }
}
