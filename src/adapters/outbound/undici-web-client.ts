import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';
import { Client } from 'undici';
import { AgentError } from '../../domain/kernel/errors.js';
import { judgeAddress, judgeForm, judgeName, literalAddress } from '../../domain/outbound/guard.js';
import type { CallOptions } from '../../ports/call-options.js';
import type { WebClient, WebRequest, WebResponse } from '../../ports/outbound/web-client.js';
import { startDeadline, unlessAborted } from './deadline.js';
import { follow, type Hop, isRedirect } from './redirect.js';
import { ACCEPTED_CODINGS, readBody } from './response-body.js';
import { reasonOf } from './web-failure.js';

/** Longer chains are loops nearly always. */
const MAX_REDIRECTS = 5;

/** For each address but the last of a name; Node's own 250 ms is less than a round trip to the other side of the world and back takes. */
const ATTEMPT_MS = 2_000;

/** Of the connection, not of the request: who sends them decides where it goes and where the next one begins. */
const ownHeaders: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface WebClientOptions {
  /** All addresses of a name; those of the machine's name service unless given. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** Why no connection may go to an address, undefined when one may; the guard's `judgeAddress` unless given. */
  readonly judge?: (address: string) => string | undefined;
  /** Certificates in PEM that are trusted besides Node's. */
  readonly extraRoots?: readonly string[];
}

/**
 * HTTP/1.1, a connection of its own for each request. Proxies that the environment names are not used: behind one it is the proxy that
 * looks names up, and what was judged here would not be where the request goes.
 */
export class UndiciWebClient implements WebClient {
  readonly #resolve: (name: string) => Promise<readonly string[]>;
  readonly #judge: (address: string) => string | undefined;
  readonly #trust: { readonly ca?: string[] };

  constructor({ resolve = resolveByMachine, judge = judgeAddress, extraRoots = [] }: WebClientOptions = {}) {
    this.#resolve = resolve;
    this.#judge = judge;
    this.#trust = extraRoots.length === 0 ? {} : { ca: [...getCACertificates('default'), ...extraRoots] };
  }

  async request(request: WebRequest, { signal }: CallOptions): Promise<WebResponse> {
    signal.throwIfAborted();
    const start = firstHop(request);
    const deadline = startDeadline(request.timeoutMs, signal);
    try {
      return await this.#walk(start, request, deadline.signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (!deadline.expired()) throw cause;
      const problem = `${start.url.origin} has not answered within ${request.timeoutMs} ms`;
      throw new AgentError('outbound.timed_out', { problem }, { cause });
    } finally {
      deadline.close();
    }
  }

  async judge(url: string, { signal }: CallOptions): Promise<void> {
    signal.throwIfAborted();
    if (!URL.canParse(url)) throw new AgentError('outbound.refused', { problem: 'this is no URL' });
    const target = new URL(url);
    try {
      await this.#addressesOf(target, true, signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof AgentError) throw cause;
      throw new AgentError('outbound.failed', { problem: `${target.origin}: ${reasonOf(cause)}` }, { cause });
    }
  }

  async #walk(start: Hop, request: WebRequest, signal: AbortSignal): Promise<WebResponse> {
    let hop = start;
    for (let left = MAX_REDIRECTS; ; left--) {
      const answer = await this.#ask(hop, request, signal);
      if (answer.location === undefined) return answer;
      if (left === 0) {
        throw new AgentError('outbound.failed', { problem: `${start.url.origin} redirects more than ${MAX_REDIRECTS} times` });
      }
      hop = follow(hop, answer.status, answer.location);
    }
  }

  async #ask(hop: Hop, { guarded, maxBytes }: WebRequest, signal: AbortSignal): Promise<Answer> {
    try {
      const addresses = await this.#addressesOf(hop.url, guarded, signal);
      return await this.#exchange(hop, addresses, maxBytes, signal);
    } catch (cause) {
      if (cause instanceof AgentError) throw cause;
      throw new AgentError('outbound.failed', { problem: `${hop.url.origin}: ${reasonOf(cause)}` }, { cause });
    }
  }

  /** Where a connection may go. One look-up: what is judged is what is connected to, and a second answer may be another one. */
  async #addressesOf(url: URL, guarded: boolean, signal: AbortSignal): Promise<readonly string[]> {
    refuseIf(judgeForm(url), url);
    const literal = literalAddress(url.hostname);
    if (literal === undefined && guarded) refuseIf(judgeName(url.hostname), url);
    const addresses = literal === undefined ? await unlessAborted(this.#resolve(url.hostname), signal) : [literal];
    if (addresses.length === 0) {
      throw new AgentError('outbound.failed', { problem: `${url.origin}: the name has no address` });
    }
    // One forbidden address among several is an attempt, or a mistake whose outcome would be left to chance.
    if (guarded) for (const address of addresses) refuseIf(this.#judge(address), url);
    return addresses;
  }

  async #exchange(hop: Hop, addresses: readonly string[], maxBytes: number, signal: AbortSignal): Promise<Answer> {
    const { url, method, headers, body = null } = hop;
    const client = this.#clientOf(url, addresses);
    try {
      const path = url.pathname + url.search;
      const response = await client.request({ path, method, headers, body, signal });
      // The client that is destroyed below says so here, where nobody may listen any more.
      response.body.on('error', () => {});
      const { statusCode: status } = response;
      const location = isRedirect(status) ? first(response.headers.location) : undefined;
      if (location !== undefined) return { status, body: new Uint8Array(), location };
      const coding = first(response.headers['content-encoding']) ?? '';
      return { status, body: await unlessAborted(readBody(response.body, coding, maxBytes), signal), location };
    } finally {
      await client.destroy();
    }
  }

  /** All its waiting is under our own deadline. */
  #clientOf(url: URL, addresses: readonly string[]): Client {
    // A name's final dot is not part of what a certificate says.
    const name = url.hostname.replace(/\.$/, '');
    return new Client(url.origin, {
      allowH2: false,
      // An environment variable chooses another parser otherwise, which is an experiment.
      useMilo: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
      connect: {
        timeout: 0,
        lookup: pinned(addresses),
        // Said aloud, as NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment counts otherwise.
        rejectUnauthorized: true,
        ...this.#trust,
        ...(literalAddress(name) === undefined ? { servername: name } : {}),
      },
    });
  }
}

interface Answer extends WebResponse {
  /** Of a redirect. */
  readonly location: string | undefined;
}

function firstHop({ url, method, headers, body }: WebRequest): Hop {
  if (!URL.canParse(url)) throw new AgentError('outbound.refused', { problem: 'this is no URL' });
  // CONNECT asks for a tunnel to somewhere that nobody has judged.
  if (method === 'CONNECT') throw new AgentError('outbound.refused', { problem: 'the method CONNECT asks for no answer' });
  const own = { 'user-agent': 'holdfast' };
  const given = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ownHeaders.has(name));
  return {
    url: new URL(url),
    method,
    headers: { ...own, ...Object.fromEntries(given), 'accept-encoding': ACCEPTED_CODINGS },
    body,
  };
}

function refuseIf(problem: string | undefined, { origin, protocol }: URL): void {
  if (problem === undefined) return;
  // The origin of what is neither http nor https is `null`.
  throw new AgentError('outbound.refused', { problem: `${origin === 'null' ? protocol : origin}: ${problem}` });
}

function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_, { all: wantsAll = false }, callback) => {
    if (wantsAll) callback(null, all);
    else callback(null, all[0]?.address ?? '', all[0]?.family);
  };
}

async function resolveByMachine(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
