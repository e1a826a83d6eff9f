import type { IncomingHttpHeaders } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { UndiciWebClient } from '../../../src/adapters/outbound/undici-web-client.js';
import { get, webClientContract } from '../../contract/web-client.contract.js';
import { FakeWebClient } from '../../fakes/fake-web-client.js';
import { tempFolder } from '../../support/temp-folder.js';
import { canMakeCertificates, throwawayCertificate } from '../../support/throwaway-certificate.js';
import { asked, FORBIDDEN, judge, PUBLIC, redirect, WebServers } from './web-servers.js';

const servers = new WebServers();
afterEach(() => servers.close());

const never = { signal: new AbortController().signal };
const client = new UndiciWebClient({ judge });
const text = (body: Uint8Array) => new TextDecoder().decode(body);

/** A name service whose answers a test writes, one after the other; the last one stays. */
function nameService(...answers: readonly (readonly string[])[]) {
  const names: string[] = [];
  const resolve = async (name: string) => answers[Math.min(names.push(name), answers.length) - 1] ?? [];
  return { names, resolve };
}

webClientContract('fake', async () => {
  const fake = new FakeWebClient();
  let pages = 0;
  const serve = async (body: string, status = 200) => {
    const url = `http://page-${++pages}.test/`;
    fake.serve(url, body, status);
    return url;
  };
  return {
    client: fake,
    serve,
    serveForbidden: async (body) => {
      const url = await serve(body);
      fake.forbid(url);
      return url;
    },
    silent: async () => {
      const url = await serve('');
      fake.silence(url);
      return url;
    },
    dead: async () => 'http://dead.test/',
    close: async () => {},
  };
});

webClientContract('undici', async () => {
  const serve = async (body: string, status = 200, host = PUBLIC) => {
    const { port } = await servers.http(
      (request, response) => request.resume().on('end', () => response.writeHead(status).end(body)),
      host,
    );
    return `http://${host}:${port}/`;
  };
  return {
    client,
    serve,
    serveForbidden: (body) => serve(body, 200, FORBIDDEN),
    silent: async () => `http://${PUBLIC}:${(await servers.tcp(() => {})).port}/`,
    dead: async () => `http://${PUBLIC}:${await servers.freePort()}/`,
    close: () => servers.close(),
  };
});

describe('what is asked', () => {
  test('method, path, body, headers; the name as Host, whatever the caller says', async () => {
    const seen: [string, IncomingHttpHeaders][] = [];
    const { port } = await servers.http(async (request, response) => {
      seen.push([await asked(request), request.headers]);
      response.end();
    });
    const { names, resolve } = nameService([PUBLIC]);
    const headers = {
      'X-Mine': 'yes',
      Host: 'evil.test',
      'Content-Length': '1',
      'transfer-encoding': 'chunked',
      Connection: 'upgrade',
    };
    const request = get(`http://Web.TEST:${port}/a%20b?c=d#e`, { method: 'PUT', headers, body: 'grüße' });
    await new UndiciWebClient({ judge, resolve }).request(request, never);
    expect(names).toEqual(['web.test']);
    expect(seen).toEqual([
      [
        `PUT /a%20b?c=d web.test:${port} grüße`,
        {
          host: `web.test:${port}`,
          connection: expect.any(String),
          'user-agent': 'holdfast',
          'accept-encoding': 'gzip, br',
          'x-mine': 'yes',
          'content-length': '7',
        },
      ],
    ]);
  });

  test('the caller may name itself', async () => {
    let agent: string | undefined;
    const { port } = await servers.http((request, response) => {
      agent = request.headers['user-agent'];
      response.end();
    });
    await client.request(get(`http://${PUBLIC}:${port}/`, { headers: { 'USER-AGENT': 'me' } }), never);
    expect(agent).toBe('me');
  });

  test('HEAD has no body, whatever its headers promise', async () => {
    const { port } = await servers.http((_, response) => {
      response.writeHead(200, { 'content-length': '5000000', 'content-encoding': 'gzip' }).end();
    });
    const answer = await client.request(get(`http://${PUBLIC}:${port}/`, { method: 'HEAD' }), never);
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
  });

  test.each([
    ['a method of two words', { method: 'GET /evil' }],
    ['a header with a line break', { headers: { 'x-a': 'b\r\nx-c: d' } }],
    ['a header name with a space', { headers: { 'x a': 'b' } }],
  ])('%s is not sent', async (_, more) => {
    const { port, accepted } = await servers.http((_request, response) => void response.end());
    const call = client.request(get(`http://${PUBLIC}:${port}/`, more), never);
    await expect(call).rejects.toMatchObject({ code: 'outbound.failed', message: expect.stringMatching(/is not valid$/) });
    expect(accepted()).toBeLessThanOrEqual(1);
  });

  test('proxies that the environment names are not used', async () => {
    const proxy = await servers.http((_, response) => void response.end('proxied'));
    const { port } = await servers.http((_, response) => void response.end('direct'));
    const before = { ...process.env };
    Object.assign(process.env, { http_proxy: `http://${PUBLIC}:${proxy.port}`, NODE_USE_ENV_PROXY: '1', no_proxy: '' });
    try {
      const { body } = await client.request(get(`http://${PUBLIC}:${port}/`), never);
      expect([text(body), proxy.accepted()]).toEqual(['direct', 0]);
    } finally {
      process.env = before;
    }
  });
});

describe('Outbound guard', () => {
  test.each([
    'http://localhost/',
    'http://x.localhost./',
    'http://2130706434/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.2]/',
    'http://169.254.169.254/',
    'https://0/',
    'ftp://web.test/',
    'http://user:pw@web.test/',
    'http://[fe80::1%25lo]/',
    'nonsense',
  ])('%s is refused without a look-up', async (url) => {
    const { names, resolve } = nameService([PUBLIC]);
    const call = new UndiciWebClient({ judge, resolve }).request(get(url), never);
    await expect(call).rejects.toMatchObject({ code: 'outbound.refused' });
    expect(names).toEqual([]);
  });

  test('what is neither http nor https, and a tunnel, is refused to unguarded calls as well', async () => {
    for (const request of [
      get('ftp://web.test/', { guarded: false }),
      get('http://web.test/', { method: 'CONNECT', guarded: false }),
    ])
      await expect(client.request(request, never)).rejects.toMatchObject({ code: 'outbound.refused' });
  });

  test('a password in a URL is in no message', async () => {
    const refusal: unknown = await client
      .request(get('http://user:s3cret@web.test/?t0ken'), never)
      .catch((error: unknown) => error);
    expect(String(refusal)).toBe(
      'AgentError: outbound.refused: http://web.test: credentials belong into a header, not into the URL',
    );
  });

  test('one forbidden address among several refuses all, before a connection', async () => {
    const { port, accepted } = await servers.http((_, response) => void response.end());
    for (const answer of [
      [PUBLIC, FORBIDDEN],
      [FORBIDDEN, PUBLIC],
      [PUBLIC, '::1'],
      [PUBLIC, 'fe80::1%lo'],
    ]) {
      const { resolve } = nameService(answer);
      const call = new UndiciWebClient({ judge, resolve }).request(get(`http://web.test:${port}/`), never);
      await expect(call).rejects.toMatchObject({ code: 'outbound.refused' });
    }
    expect(accepted()).toBe(0);
  });

  test('rebinding: the name is looked up once, and the connection goes to what was judged', async () => {
    const { port } = await servers.http((_, response) => void response.end('judged'));
    const { names, resolve } = nameService([PUBLIC], [FORBIDDEN]);
    const { body } = await new UndiciWebClient({ judge, resolve }).request(get(`http://web.test:${port}/`), never);
    expect([text(body), names]).toEqual(['judged', ['web.test']]);
  });

  test('rebinding between redirects: the second answer is judged as well', async () => {
    const { port, accepted } = await servers.http((_, response) => redirect(response, 302, '/again'));
    const { names, resolve } = nameService([PUBLIC], [FORBIDDEN]);
    const call = new UndiciWebClient({ judge, resolve }).request(get(`http://web.test:${port}/`), never);
    await expect(call).rejects.toMatchObject({
      code: 'outbound.refused',
      message: expect.stringContaining('127.0.0.2 is loopback'),
    });
    expect([names.length, accepted()]).toEqual([2, 1]);
  });

  test('a name without address, and one that is not known', async () => {
    const empty = new UndiciWebClient({ judge, resolve: async () => [] }).request(get('http://web.test/'), never);
    await expect(empty).rejects.toMatchObject({ code: 'outbound.failed' });
    const missing = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' });
    const unknown = new UndiciWebClient({ judge, resolve: () => Promise.reject(missing) }).request(
      get('http://web.test/'),
      never,
    );
    await expect(unknown).rejects.toMatchObject({ message: 'outbound.failed: http://web.test: no such name' });
  });

  test('a dead address does not keep from a living one of the same name', async () => {
    const { port } = await servers.http((_, response) => void response.end('second'));
    const alive = new UndiciWebClient({ judge: () => undefined, resolve: async () => ['127.0.0.3', PUBLIC] });
    expect(text((await alive.request(get(`http://web.test:${port}/`), never)).body)).toBe('second');
  });

  test('the machine’s own name service is asked when no other is given', async () => {
    const { port } = await servers.http((_, response) => void response.end('here'));
    const open = await new UndiciWebClient().request(get(`http://localhost:${port}/`, { guarded: false }), never);
    expect(text(open.body)).toBe('here');
  });
});

describe('redirects', () => {
  test.each([
    [301, 'GET', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [301, 'POST', 'GET', ''],
    [302, 'PUT', 'PUT', 'body'],
    [303, 'PUT', 'GET', ''],
    [303, 'HEAD', 'HEAD', ''],
    [307, 'POST', 'POST', 'body'],
    [308, 'PATCH', 'PATCH', 'body'],
  ])('%i after %s asks with %s', async (status, method, then, body) => {
    const seen: string[] = [];
    const { port } = await servers.http(async (request, response) => {
      seen.push(await asked(request));
      if (request.url === '/') redirect(response, status, 'next?x#y');
      else response.end();
    });
    const own = method === 'GET' || method === 'HEAD' ? undefined : 'body';
    await client.request(get(`http://${PUBLIC}:${port}/`, { method, body: own }), never);
    expect(seen[1]).toBe([then, '/next?x', `${PUBLIC}:${port}`, body].filter((part) => part !== '').join(' '));
  });

  test('headers go on within an origin; to another one only those that can be no key', async () => {
    const headers = {
      Authorization: 'Bearer x',
      Cookie: 'a=b',
      'X-Api-Key': 'k',
      Accept: 'text/plain',
      'Content-Type': 'text/x',
    };
    const seen: IncomingHttpHeaders[] = [];
    const elsewhere = await servers.http((request, response) => {
      seen.push(request.headers);
      response.end();
    });
    const { port } = await servers.http((request, response) => {
      seen.push(request.headers);
      redirect(response, 307, request.url === '/' ? '/same' : `http://${PUBLIC}:${elsewhere.port}/`);
    });
    await client.request(get(`http://${PUBLIC}:${port}/`, { method: 'POST', headers, body: 'x' }), never);
    const named = seen.map((each) =>
      Object.keys(each)
        .filter((name) => !/^(host|connection|content-length|accept-encoding|user-agent)$/.test(name))
        .sort(),
    );
    const all = ['accept', 'authorization', 'content-type', 'cookie', 'x-api-key'];
    expect(named).toEqual([all, all, ['accept', 'content-type']]);
  });

  test('to a forbidden target, in every spelling, is refused, and nobody is asked there', async () => {
    const inside = await servers.http((_, response) => void response.end('secret'), FORBIDDEN);
    const targets = [
      `http://127.0.0.2:${inside.port}/`,
      `http://127.2:${inside.port}/`,
      `//0x7f000002:${inside.port}/`,
      'http://localhost/',
    ];
    for (const target of [...targets, 'http://[::ffff:7f00:2]/', 'file:///etc/passwd', 'http://user@web.test/']) {
      const { port } = await servers.http((_, response) => redirect(response, 302, target));
      const call = client.request(get(`http://${PUBLIC}:${port}/`), never);
      await expect(call, target).rejects.toMatchObject({ code: 'outbound.refused' });
    }
    expect(inside.accepted()).toBe(0);
  });

  test.each([
    [5, '200 end'],
    [6, /redirects more than 5 times/],
  ])('%i of them', async (count, outcome) => {
    const { port } = await servers.http((request, response) => {
      const number = Number(request.url?.slice(1));
      if (number < count) redirect(response, 302, `/${number + 1}`);
      else response.end('end');
    });
    const ended = await client.request(get(`http://${PUBLIC}:${port}/0`), never).then(
      ({ status, body }) => `${status} ${text(body)}`,
      (error: unknown) => String(error),
    );
    expect(ended).toMatch(outcome);
  });

  test('to what is no URL fails', async () => {
    const { port } = await servers.http((_, response) => redirect(response, 302, 'http://['));
    await expect(client.request(get(`http://${PUBLIC}:${port}/`), never)).rejects.toMatchObject({ code: 'outbound.failed' });
  });

  test('without a location it is an answer like any other', async () => {
    const { port } = await servers.http((_, response) => void response.writeHead(302).end('stay'));
    const { status, body } = await client.request(get(`http://${PUBLIC}:${port}/`), never);
    expect([status, text(body)]).toEqual([302, 'stay']);
  });
});

describe('servers that mean harm, or fail', () => {
  const bomb = Buffer.alloc(50_000_000);

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['br', brotliCompressSync],
  ] as const)('%s: content is decoded, a bomb is too large', async (coding, encode) => {
    const { port } = await servers.http((request, response) => {
      response.writeHead(200, { 'content-encoding': coding }).end(encode(request.url === '/bomb' ? bomb : 'small'));
    });
    expect(text((await client.request(get(`http://${PUBLIC}:${port}/`), never)).body)).toBe('small');
    const exploding = client.request(get(`http://${PUBLIC}:${port}/bomb`, { maxBytes: 100_000 }), never);
    await expect(exploding).rejects.toMatchObject({ code: 'outbound.too_large' });
  });

  test('content that a coding makes larger fits when it fits decoded', async () => {
    const random = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 2_654_435_761) >>> 11));
    const { port } = await servers.http((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(random, { level: 0 }));
    });
    const { body } = await client.request(get(`http://${PUBLIC}:${port}/`, { maxBytes: random.length }), never);
    expect(Buffer.compare(body, random)).toBe(0);
  });

  test.each([
    ['a coding that is not known', 'zstd', Buffer.from('x')],
    ['several codings', 'gzip, gzip', gzipSync(gzipSync('x'))],
    ['damaged gzip', 'gzip', Buffer.from('this is no gzip')],
    ['gzip that is cut', 'gzip', gzipSync('hello').subarray(0, -4)],
  ])('%s fails', async (_, coding, content) => {
    const { port } = await servers.http((_request, response) => {
      response.writeHead(200, { 'content-encoding': coding }).end(content);
    });
    await expect(client.request(get(`http://${PUBLIC}:${port}/`), never)).rejects.toMatchObject({ code: 'outbound.failed' });
  });

  test('a body without end is too large, not kept', async () => {
    const { port } = await servers.http((_, response) => {
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
        if (!response.destroyed) response.once('drain', write);
      };
      write();
    });
    await expect(client.request(get(`http://${PUBLIC}:${port}/`), never)).rejects.toMatchObject({ code: 'outbound.too_large' });
  });

  test('the time is up for one that sends a byte now and then: headers, body, and over redirects', async () => {
    const trickles = ['HTTP/1.1 200 OK\r\n', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'];
    for (const start of trickles) {
      const { port } = await servers.tcp((socket) => {
        socket.write(start);
        const timer = setInterval(() => socket.write('x'), 10);
        socket.on('close', () => clearInterval(timer));
      });
      const startedAt = performance.now();
      const call = client.request(get(`http://${PUBLIC}:${port}/`, { timeoutMs: 200, maxBytes: 5_000 }), never);
      await expect(call).rejects.toMatchObject({ code: 'outbound.timed_out' });
      expect(performance.now() - startedAt).toBeLessThan(5_000);
    }
    const { port } = await servers.http((_, response) => setTimeout(() => redirect(response, 302, '/'), 100));
    const call = client.request(get(`http://${PUBLIC}:${port}/`, { timeoutMs: 250 }), never);
    await expect(call).rejects.toMatchObject({ code: 'outbound.timed_out' });
  });

  test('a name service that is silent is under the same time', async () => {
    const silent = new UndiciWebClient({ judge, resolve: () => new Promise(() => {}) });
    const call = silent.request(get('http://web.test/', { timeoutMs: 50 }), never);
    await expect(call).rejects.toMatchObject({ code: 'outbound.timed_out' });
  });

  test.each([
    ['closes at once', '', /outbound.failed: .*(ended before|reset)/],
    ['speaks no HTTP', '220 smtp.test ESMTP\r\n', /outbound.failed: .*it does not speak HTTP/],
    [
      'ends before its length',
      'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf',
      /outbound.failed: .*ended before the answer did/,
    ],
    ['ends within a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf', /outbound.failed/],
    [
      'sends headers without end',
      `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(20_000)}`,
      /outbound.failed: .*headers are too large/,
    ],
  ])('one that %s: no part of its answer is given', async (_, answer, problem) => {
    const { port } = await servers.tcp((socket) => void socket.once('data', () => socket.end(answer)));
    await expect(client.request(get(`http://${PUBLIC}:${port}/`), never)).rejects.toThrow(problem);
  });

  test('nothing stays open behind any outcome', async () => {
    const { port, accepted } = await servers.http((request, response) => {
      if (request.url === '/redirect') redirect(response, 302, '/');
      else if (request.url === '/large') response.end('x'.repeat(100_000));
      else response.end('x');
    });
    for (const path of ['', 'redirect', 'large'])
      await client.request(get(`http://${PUBLIC}:${port}/${path}`), never).catch(() => {});
    expect(accepted()).toBe(4);
    await expect.poll(() => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length).toBe(0);
  });
});

describe.skipIf(!canMakeCertificates())('https', () => {
  const answer = 'over TLS';
  const setUp = async (names: readonly string[], days?: number) => {
    const certificate = throwawayCertificate(await tempFolder(), names, days);
    const server = await servers.https(certificate, (request, response) => {
      if (request.url === '/down') redirect(response, 302, `http://${PUBLIC}:1/`);
      else response.end(answer);
    });
    const trusting = new UndiciWebClient({ judge, resolve: async () => [PUBLIC], extraRoots: [certificate.cert] });
    const distrusting = new UndiciWebClient({ judge, resolve: async () => [PUBLIC] });
    return { ...server, trusting, distrusting };
  };

  test('a trusted certificate for the name, which is sent as SNI; with a final dot as well', async () => {
    const { port, trusting } = await setUp(['DNS:web.test']);
    for (const host of ['web.test', 'WEB.test', 'web.test.']) {
      const { body } = await trusting.request(get(`https://${host}:${port}/`), never);
      expect(text(body)).toBe(answer);
    }
  });

  test('a certificate for an address', async () => {
    const { port, trusting } = await setUp([`IP:${PUBLIC}`]);
    expect(text((await trusting.request(get(`https://${PUBLIC}:${port}/`), never)).body)).toBe(answer);
  });

  test('a certificate of nobody is refused, also where the environment would have it', async () => {
    const { port, distrusting } = await setUp(['DNS:web.test']);
    const expected = /outbound.failed: https:\/\/web.test:\d+: its certificate is signed by nobody that is trusted here/;
    await expect(distrusting.request(get(`https://web.test:${port}/`), never)).rejects.toThrow(expected);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      await expect(distrusting.request(get(`https://web.test:${port}/`), never)).rejects.toThrow(expected);
      await expect(distrusting.request(get(`https://web.test:${port}/`, { guarded: false }), never)).rejects.toThrow(expected);
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  test('a certificate for another name is refused', async () => {
    const { port, trusting } = await setUp(['DNS:other.test']);
    await expect(trusting.request(get(`https://web.test:${port}/`), never)).rejects.toThrow(
      /its certificate is for another name/,
    );
  });

  test('a redirect from https to http is refused', async () => {
    const { port, trusting } = await setUp(['DNS:web.test']);
    const call = trusting.request(get(`https://web.test:${port}/down`), never);
    await expect(call).rejects.toMatchObject({
      code: 'outbound.refused',
      message: expect.stringContaining('from https to http'),
    });
  });

  test('where no TLS is spoken', async () => {
    const { port } = await servers.http((_, response) => void response.end());
    const call = client.request(get(`https://${PUBLIC}:${port}/`), never);
    await expect(call).rejects.toThrow(/outbound.failed: .*does not speak TLS/);
  });
});
