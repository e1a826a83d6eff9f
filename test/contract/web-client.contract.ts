import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WebClient, WebRequest } from '../../src/ports/outbound/web-client.js';

/** A web to ask in. */
export interface WebWorld {
  readonly client: WebClient;
  /** The URL of a page that answers this, in every call another page. */
  serve(body: string, status?: number): Promise<string>;
  /** Of a page like this that the guard forbids. */
  serveForbidden(body: string): Promise<string>;
  /** Of one that never answers. */
  silent(): Promise<string>;
  /** Where nobody listens. */
  dead(): Promise<string>;
  close(): Promise<void>;
}

const never = { signal: new AbortController().signal };

export function get(url: string, more: Partial<WebRequest> = {}): WebRequest {
  return { url, method: 'GET', headers: {}, body: undefined, timeoutMs: 10_000, maxBytes: 1024, guarded: true, ...more };
}

export function webClientContract(name: string, make: () => Promise<WebWorld>): void {
  describe(`${name}: WebClient`, () => {
    let world: WebWorld;
    beforeEach(async () => {
      world = await make();
    });
    afterEach(() => world.close());

    const textOf = async (request: WebRequest) => {
      const { status, body } = await world.client.request(request, never);
      return `${status} ${new TextDecoder().decode(body)}`;
    };

    test.each([200, 204, 304, 400, 404, 500, 599])('status %i is an answer', async (status) => {
      const body = status === 204 || status === 304 ? '' : 'hello';
      expect(await textOf(get(await world.serve(body, status)))).toBe(`${status} ${body}`);
    });

    test.each(['POST', 'PUT', 'DELETE', 'PATCH'])('%s', async (method) => {
      expect(await textOf(get(await world.serve('done'), { method, body: '{"a":1}' }))).toBe('200 done');
    });

    test('an answer of exactly the most bytes, and one of one more', async () => {
      expect(await textOf(get(await world.serve('x'.repeat(1024))))).toBe(`200 ${'x'.repeat(1024)}`);
      const larger = world.client.request(get(await world.serve('x'.repeat(1025))), never);
      await expect(larger).rejects.toMatchObject({ code: 'outbound.too_large' });
    });

    test('Outbound guard: a forbidden target is refused; unless the call is not guarded', async () => {
      const url = await world.serveForbidden('secret');
      await expect(world.client.request(get(url), never)).rejects.toMatchObject({ code: 'outbound.refused' });
      expect(await textOf(get(url, { guarded: false }))).toBe('200 secret');
    });

    test.each(['http://[::1]:1/', 'http://localhost:1/', 'http://169.254.169.254/'])(
      'Outbound guard: %s, which needs no look-up',
      async (url) => {
        await expect(world.client.request(get(url), never)).rejects.toMatchObject({ code: 'outbound.refused' });
      },
    );

    test.each(['ftp://page.test/', 'file:///etc/passwd', 'http://user:password@page.test/', 'page.test', ''])(
      'Outbound guard: %j is refused, guarded or not',
      async (url) => {
        for (const guarded of [true, false])
          await expect(world.client.request(get(url, { guarded }), never)).rejects.toMatchObject({ code: 'outbound.refused' });
      },
    );

    test('where nobody listens', async () => {
      await expect(world.client.request(get(await world.dead()), never)).rejects.toMatchObject({ code: 'outbound.failed' });
    });

    test('no answer in time', async () => {
      const waiting = world.client.request(get(await world.silent(), { timeoutMs: 50 }), never);
      await expect(waiting).rejects.toMatchObject({ code: 'outbound.timed_out' });
    });

    test('an abort ends a call that gets no answer, with its own reason', async () => {
      const abort = new AbortController();
      const reason = new Error('enough');
      const waiting = world.client.request(get(await world.silent()), { signal: abort.signal });
      setTimeout(() => abort.abort(reason), 20);
      await expect(waiting).rejects.toBe(reason);
    });

    test('an abort before the call', async () => {
      const reason = new Error('never mind');
      const call = world.client.request(get(await world.serve('x')), { signal: AbortSignal.abort(reason) });
      await expect(call).rejects.toBe(reason);
    });

    test('calls do not wait for each other', async () => {
      const abort = new AbortController();
      const hanging = world.client.request(get(await world.silent()), { signal: abort.signal }).catch(() => 'aborted');
      const urls = await Promise.all(['a', 'b', 'c'].map((body) => world.serve(body)));
      expect(await Promise.all(urls.map((url) => textOf(get(url))))).toEqual(['200 a', '200 b', '200 c']);
      abort.abort();
      expect(await hanging).toBe('aborted');
    });
  });
}
