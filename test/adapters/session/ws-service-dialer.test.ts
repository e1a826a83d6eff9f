import { hash } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo, LookupFunction } from 'node:net';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { WsServiceDialer } from '../../../src/adapters/session/ws-service-dialer.js';
import { options, readSome, serviceDialerContract, targetOf } from '../../contract/service-dialer.contract.js';

/** Every name is this machine's; what was asked for is written down. */
function loopback(asked: string[] = []): LookupFunction {
  return (name, { all }, done) => {
    asked.push(name);
    if (all === true) done(null, [{ address: '127.0.0.1', family: 4 }]);
    else done(null, '127.0.0.1', 4);
  };
}

async function service(given: ConstructorParameters<typeof WebSocketServer>[0] = {}) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...given });
  await once(server, 'listening');
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  server.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => {
      const text = String(data);
      if (text === 'bye') socket.close(1000, 'done');
      else if (text === 'flood') for (let count = 0; count < 1_000; count++) socket.send(Buffer.alloc(16_384));
      else if (text === 'huge') socket.send(Buffer.alloc(5 * 1024 * 1024));
      else if (text === 'fail') socket.close(1011, 'broken');
      else if (text === 'die') socket.terminate();
      else socket.send(isBinary ? 'binary' : `<${text}>`);
    });
  });
  return { server, port: (server.address() as AddressInfo).port };
}

async function raw(onSocket: (socket: Socket) => void) {
  const server = createTcpServer(onSocket);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

serviceDialerContract('WsServiceDialer', async () => {
  const { server, port } = await service();
  const closed = createTcpServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const closedPort = (closed.address() as AddressInfo).port;
  await new Promise((resolve) => closed.close(resolve));
  const dialer = new WsServiceDialer({ resolve: loopback() });
  return { dialer, port, closedPort, connections: () => server.clients.size };
});

describe('WsServiceDialer', () => {
  test('asks for the name of the service, its path, headers and subprotocols', async () => {
    const asked: string[] = [];
    const { server, port } = await service({ handleProtocols: () => 'tty' });
    const connection = once(server, 'connection');
    const target = targetOf(port, { path: '/sh?x=1', headers: { authorization: 'Bearer x' }, subprotocols: ['v2', 'tty'] });
    const socket = await new WsServiceDialer({ resolve: loopback(asked) }).open(target, options);
    const [, request] = await connection;
    const { host, authorization, 'sec-websocket-protocol': protocol } = request.headers;
    expect(asked).toEqual(['api.shop.svc.cluster.local']);
    expect({ url: request.url, host, authorization, protocol }).toEqual({
      url: '/sh?x=1',
      host: `api.shop.svc.cluster.local:${port}`,
      authorization: 'Bearer x',
      protocol: 'v2,tty',
    });
    socket.close();
  });

  test.each([
    ['fail', 'the service closed the session with code 1011: broken', true],
    ['die', 'the connection to the service was lost', true],
    ['bye', 'the service closed the session: done', false],
    ['huge', 'the connection to the service failed: Max payload size exceeded', true],
  ])('an end by %s is told as it was', async (text, reason, error) => {
    const { port } = await service();
    const socket = await new WsServiceDialer({ resolve: loopback() }).open(targetOf(port), options);
    socket.send(text);
    await readSome(socket);
    expect(await socket.ended).toEqual({ reason, error });
  });

  test('what leads elsewhere is not dialled, whoever has checked it before', async () => {
    const asked: string[] = [];
    const dialer = new WsServiceDialer({ resolve: loopback(asked) });
    for (const change of [{ path: '@evil.com/' }, { path: '#x' }, { name: 'evil.com/' }, { namespace: 'a@b' }]) {
      await expect(dialer.open(targetOf(1, change), options)).rejects.toMatchObject({ code: 'session.unreachable' });
    }
    expect(asked).toEqual([]);
  });

  test('a redirect is not followed', async () => {
    const port = await raw((socket) => socket.end('HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\n\r\n'));
    const failure = new WsServiceDialer({ resolve: loopback() }).open(targetOf(port), options);
    await expect(failure).rejects.toMatchObject({ code: 'session.unreachable', message: expect.stringMatching(/302/) });
  });

  test('a service that never answers costs 10 s, and a lost name is told', { timeout: 20_000 }, async () => {
    const port = await raw(() => {});
    const started = performance.now();
    const failure = new WsServiceDialer({ resolve: loopback() }).open(targetOf(port), options);
    await expect(failure).rejects.toThrow(/no answer within 10 s/);
    expect(performance.now() - started).toBeGreaterThan(9_900);
    const unknown: LookupFunction = (_, __, done) => done(new Error('getaddrinfo ENOTFOUND'), '', 4);
    await expect(new WsServiceDialer({ resolve: unknown }).open(targetOf(port), options)).rejects.toThrow(/ENOTFOUND/);
  });

  test('a service that never reads shows as unsent bytes', async () => {
    const port = await raw((socket) => {
      socket.once('data', (request) => {
        const key = /sec-websocket-key: (\S+)/i.exec(request.toString())?.[1] ?? '';
        // RFC 6455 section 4.2.2.
        const accept = hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64');
        const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
        socket.write(`${upgrade}Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
        socket.pause();
      });
    });
    const socket = await new WsServiceDialer({ resolve: loopback() }).open(targetOf(port), options);
    for (let count = 0; count < 64; count++) socket.send('x'.repeat(512 * 1024));
    await expect.poll(() => socket.unsent).toBeGreaterThan(4 * 1024 * 1024);
    socket.close();
  });
});
