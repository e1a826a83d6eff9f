import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type Daemon, withDaemon } from './support/daemon.js';

const PORT = 18_080;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Answers with its port, and says of itself at /healthz what it is told. */
class Replica {
  healthy = true;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(({ url }, response) => {
      response.writeHead(url === '/healthz' && !this.healthy ? 503 : 200, { connection: 'close' }).end(String(this.port));
    });
  }

  static async start(): Promise<Replica> {
    const replica = new Replica();
    replica.#server.listen(0, '127.0.0.1');
    await once(replica.#server, 'listening');
    closers.push(async () => replica.#server.close());
    return replica;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
}

interface Explained {
  readonly ports: readonly [
    {
      readonly outcome: string;
      readonly endpoints: readonly { readonly target: string; readonly verdict: string; readonly reason: string }[];
    },
  ];
}

const explain = (daemon: Daemon) => daemon.json<Explained>('explain', 'service', 'web', '--port', 'http');

async function answer(vip: string): Promise<string> {
  try {
    return await (await fetch(`http://${vip}:${PORT}/`, { headers: { connection: 'close' } })).text();
  } catch {
    return 'refused';
  }
}

function manifest(replicas: readonly Replica[]): string {
  const endpoints = replicas.map(({ port }) => `    - { address: 127.0.0.1, ports: { http: ${port} } }\n`).join('');
  return `apiVersion: holdfast/v1
kind: Service
metadata: { name: web }
spec:
  ports: [{ name: http, port: ${PORT} }, { name: dns, port: ${PORT}, protocol: udp }]
  health: { http: { path: /healthz }, interval: 200ms, rise: 1, fall: 2 }
  endpoints:
${endpoints}`;
}

test('an endpoint that fails its checks gets no new connection, all of them refuse, and each comes back by itself', async () => {
  await withDaemon(async (daemon) => {
    const [one, two] = [await Replica.start(), await Replica.start()];
    await daemon.apply(manifest([one, two]));
    const { status } = await daemon.json<{ status: { vip: string } }>('get', 'service', 'web');
    one.healthy = false;
    await expect.poll(async () => (await explain(daemon)).ports[0].endpoints[0]?.verdict, { timeout: 5_000 }).toBe('unhealthy');
    const answers = await Promise.all(Array.from({ length: 50 }, () => answer(status.vip)));
    expect(new Set(answers)).toEqual(new Set([String(two.port)]));
    const shown = await daemon.cli(['status']);
    expect(shown.code).toBe(4);
    expect(shown.stdout).toContain(`127.0.0.1:${one.port} (status 503, expected 200 to 399)`);
    two.healthy = false;
    await expect
      .poll(async () => (await explain(daemon)).ports[0].outcome, { timeout: 5_000 })
      .toBe('new connections are refused: none of its 2 endpoints can be used (2 unhealthy)');
    expect(await answer(status.vip)).toBe('refused');
    one.healthy = true;
    two.healthy = true;
    await expect.poll(async () => (await daemon.cli(['status'])).code, { timeout: 5_000 }).toBe(0);
    expect([String(one.port), String(two.port)]).toContain(await answer(status.vip));
  });
});

test('verdicts outlive a restart', async () => {
  await withDaemon(async (daemon) => {
    const [one, two] = [await Replica.start(), await Replica.start()];
    one.healthy = false;
    await daemon.apply(manifest([one, two]));
    await expect.poll(async () => (await explain(daemon)).ports[0].endpoints[0]?.verdict, { timeout: 5_000 }).toBe('unhealthy');
    await daemon.stop('SIGKILL');
    await daemon.start();
    expect((await explain(daemon)).ports[0].endpoints[0]).toMatchObject({ verdict: 'unhealthy' });
  });
});

test('one number for tcp and udp: datagrams go to their endpoints', async () => {
  await withDaemon(async (daemon) => {
    const server = createSocket('udp4');
    server.on('message', (message, { port, address }) => server.send(`echo ${message}`, port, address));
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(async () => server.close());
    const { port } = server.address();
    await daemon.apply(`apiVersion: holdfast/v1
kind: Service
metadata: { name: echo }
spec:
  ports: [{ port: ${PORT} }, { port: ${PORT}, protocol: udp }]
  endpoints: [{ address: 127.0.0.1, ports: { udp-${PORT}: ${port} } }]
`);
    const { status } = await daemon.json<{ status: { vip: string } }>('get', 'service', 'echo');
    const client = createSocket('udp4');
    closers.push(async () => client.close());
    client.connect(PORT, status.vip);
    await once(client, 'connect');
    client.send('hello');
    const [reply] = await once(client, 'message');
    expect(String(reply)).toBe('echo hello');
  });
});
