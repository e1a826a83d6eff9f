import { AgentError } from '../../src/domain/kernel/errors.js';
import { judgeAddress, judgeForm, judgeName, literalAddress } from '../../src/domain/outbound/guard.js';
import type { CallOptions } from '../../src/ports/call-options.js';
import type { WebClient, WebRequest, WebResponse } from '../../src/ports/outbound/web-client.js';

/** A web of pages that a test puts there; everywhere else nobody listens. Everything but a silenced page answers at once. */
export class FakeWebClient implements WebClient {
  readonly #pages = new Map<string, WebResponse>();
  readonly #forbidden = new Set<string>();
  readonly #silent = new Set<string>();
  readonly #asked: WebRequest[] = [];
  #failure: unknown;

  /** From now on `url` answers this, to every method. */
  serve(url: string, body: string | Uint8Array, status = 200): void {
    this.#silent.delete(url);
    this.#pages.set(url, { status, body: typeof body === 'string' ? new TextEncoder().encode(body) : body.slice() });
  }

  /** Never answers: a call lasts until its time is over or it is aborted. */
  silence(url: string): void {
    this.#silent.add(url);
  }

  /** The guard refuses it from now on, as if its name led to this machine. */
  forbid(url: string): void {
    this.#forbidden.add(url);
  }

  /** The next call rejects with `error` and asks nobody. */
  failNext(error: unknown): void {
    this.#failure = error;
  }

  /** What was asked since the last call of this, in order; not what was refused. */
  taken(): readonly WebRequest[] {
    return this.#asked.splice(0);
  }

  async judge(url: string, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    const refusal = URL.canParse(url) ? judge(new URL(url), true) : 'this is no URL';
    if (refusal !== undefined) throw new AgentError('outbound.refused', { problem: refusal });
    if (this.#forbidden.has(url)) throw new AgentError('outbound.refused', { problem: `${url} is refused` });
  }

  async request(request: WebRequest, { signal }: CallOptions): Promise<WebResponse> {
    signal.throwIfAborted();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    const { url, guarded, maxBytes, timeoutMs } = request;
    const refusal = URL.canParse(url) ? judge(new URL(url), guarded) : 'this is no URL';
    if (refusal !== undefined) throw new AgentError('outbound.refused', { problem: refusal });
    if (guarded && this.#forbidden.has(url)) throw new AgentError('outbound.refused', { problem: `${url} is refused` });
    this.#asked.push(request);
    if (this.#silent.has(url)) await silence(url, timeoutMs, signal);
    const page = this.#pages.get(url);
    if (page === undefined) throw new AgentError('outbound.failed', { problem: `${url}: connection refused` });
    if (page.body.length > maxBytes) {
      throw new AgentError('outbound.too_large', { problem: `the answer of ${url} has more than ${maxBytes} bytes` });
    }
    return { status: page.status, body: page.body.slice() };
  }
}

/** Names lead nowhere forbidden here, unless a test has said so. */
function judge(url: URL, guarded: boolean): string | undefined {
  const literal = literalAddress(url.hostname);
  const place = literal === undefined ? judgeName(url.hostname) : judgeAddress(literal);
  return judgeForm(url) ?? (guarded ? place : undefined);
}

function silence(url: string, timeoutMs: number, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => {
      reject(new AgentError('outbound.timed_out', { problem: `${url} did not answer within ${timeoutMs} ms` }));
    }, timeoutMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
