import { type IncomingMessage, request } from 'node:http';
import type { HealthCheck } from '../../domain/dataplane/health.js';
import { formatAddressPort, type IpAddress, type PortNumber } from '../../domain/kernel/network.js';

type HttpCheck = NonNullable<HealthCheck['http']>;

/** Of an answer that is longer, no more is read: the status is what counts. */
const mostBytes = 64 * 1024;
const patienceMs = 200;

/** GET without following redirects. Resolves with what speaks against the answer; rejects with the socket's or the parser's error. */
export async function probeHttp(host: IpAddress, port: PortNumber, check: HttpCheck, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const call = request({
    host,
    port,
    path: check.path,
    method: 'GET',
    agent: false,
    signal,
    headers: { host: check.host ?? formatAddressPort(host, port), 'user-agent': 'holdfast-health', connection: 'close' },
  });
  call.once('response', resolve);
  // Also after the answer: a connection that breaks then is nobody's surprise.
  call.on('error', reject);
  call.end();
  try {
    const response = await promise;
    const reason = judge(response.statusCode ?? 0, check.status);
    await readToEnd(response);
    signal.throwIfAborted();
    return reason;
  } finally {
    call.destroy();
  }
}

function judge(status: number, wanted: number | undefined): string {
  const good = wanted === undefined ? status >= 200 && status <= 399 : status === wanted;
  return good ? '' : `status ${status}, expected ${wanted ?? '200 to 399'}`;
}

/** So that the server is not cut off in the middle of a short answer, which many log as an error; a stream that goes on is. */
async function readToEnd(response: IncomingMessage): Promise<void> {
  const timer = setTimeout(() => response.destroy(), patienceMs);
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += chunk.length;
      if (bytes > mostBytes) return;
    }
  } catch {
    // The status is known.
  } finally {
    clearTimeout(timer);
  }
}
