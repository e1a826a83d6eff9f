import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Server as GrpcServer, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { NetworkHealthProber } from '../../../src/adapters/dataplane/network-health-prober.js';
import {
  type HealthCheckResponse,
  type HealthServer,
  HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../../src/adapters/generated/grpc/health/v1/health.js';
import type { HealthCheck } from '../../../src/domain/dataplane/health.js';
import { ipAddress, portNumber } from '../../../src/domain/kernel/network.js';
import type { ProbeTarget } from '../../../src/ports/dataplane/health-prober.js';
import { healthProberContract } from '../../contract/health-prober.contract.js';

const prober = new NetworkHealthProber();
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function target(port: number, check: HealthCheck, host = '127.0.0.1'): ProbeTarget {
  const [address, number] = [ipAddress(host), portNumber(port)];
  if (address === undefined || number === undefined) throw new Error(`${host}:${port}`);
  return { address, port: number, check };
}

async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closers.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const httpServer = (handle: RequestListener) => listening(createHttpServer(handle));
const tcpServer = (onConnection: (socket: Socket) => void = () => {}) => listening(createServer(onConnection));

/** Nothing listens there any more. */
async function freePort(): Promise<number> {
  const port = await tcpServer();
  await closers.pop()?.();
  return port;
}

async function grpcServer(answer: (service: string) => HealthCheckResponse | Partial<ServiceError>): Promise<number> {
  const server = new GrpcServer();
  const check: HealthServer['check'] = (call, callback) => {
    const result = answer(call.request.service);
    if ('code' in result) callback(result);
    else callback(null, result as HealthCheckResponse);
  };
  server.addService(HealthService, { check });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  closers.push(async () => server.forceShutdown());
  return port;
}

async function reasonOf(asked: ProbeTarget): Promise<string> {
  const { ok, reason } = await prober.probe(asked, { signal: AbortSignal.timeout(10_000) });
  expect(ok).toBe(reason === '');
  return reason;
}

const checks: Readonly<Record<string, HealthCheck>> = {
  http: { http: { path: '/healthz' } },
  grpc: { grpc: { service: '' } },
};

for (const [kind, check] of Object.entries(checks)) {
  healthProberContract(`NetworkHealthProber, ${kind}`, async () => ({
    prober,
    well: target(
      kind === 'http'
        ? await httpServer((_, response) => response.end('ok'))
        : await grpcServer(() => ({ status: Serving.SERVING })),
      check,
    ),
    dead: target(await freePort(), check),
    // Accepts, and never says anything.
    silent: target(await tcpServer(), check),
    close: async () => {},
  }));
}

describe('tcp', () => {
  const tcp = { tcp: {} };

  test('a connection is enough, and is closed', async () => {
    const closed = Promise.withResolvers<void>();
    const port = await tcpServer((socket) => socket.resume().on('close', closed.resolve));
    expect(await reasonOf(target(port, tcp))).toBe('');
    await closed.promise;
  });

  test('IPv6', async () => {
    const port = await listening(createServer(), '::1');
    expect(await reasonOf(target(port, tcp, '::1'))).toBe('');
  });

  test('nothing listens', async () => {
    expect(await reasonOf(target(await freePort(), tcp))).toBe('connection refused');
  });
});

describe('http', () => {
  const http = (more: object = {}) => ({ http: { path: '/healthz', ...more } });

  test.each<{ code: number; wanted?: number; reason: string }>([
    { code: 200, reason: '' },
    { code: 204, reason: '' },
    { code: 302, reason: '' },
    { code: 399, reason: '' },
    { code: 400, reason: 'status 400, expected 200 to 399' },
    { code: 503, reason: 'status 503, expected 200 to 399' },
    { code: 503, wanted: 503, reason: '' },
    { code: 200, wanted: 204, reason: 'status 200, expected 204' },
  ])('status $code, wanted $wanted', async ({ code, wanted, reason }) => {
    const port = await httpServer((_, response) => response.writeHead(code, { location: '/elsewhere' }).end());
    expect(await reasonOf(target(port, http(wanted === undefined ? {} : { status: wanted })))).toBe(reason);
  });

  test('asks once, in the name that it is told, and keeps no connection', async () => {
    const asked: unknown[] = [];
    const port = await httpServer(({ method, url, httpVersion, headers }, response) => {
      asked.push({ method, url, httpVersion, headers });
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    await reasonOf(target(port, http({ path: '/a?b=c', host: 'example.com' })));
    await reasonOf(target(port, http()));
    const headers = { 'user-agent': 'holdfast-health', connection: 'close' };
    expect(asked).toEqual([
      { method: 'GET', url: '/a?b=c', httpVersion: '1.1', headers: { ...headers, host: 'example.com' } },
      { method: 'GET', url: '/healthz', httpVersion: '1.1', headers: { ...headers, host: `127.0.0.1:${port}` } },
    ]);
  });

  test('an answer that never ends counts by its status', async () => {
    const port = await httpServer((_, response) => void response.writeHead(200).write('event'));
    expect(await reasonOf(target(port, http()))).toBe('');
  });

  test('an answer without a limit is not read to its end', async () => {
    const port = await httpServer((_, response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384)));
      };
      response.on('drain', more);
      more();
    });
    expect(await reasonOf(target(port, http()))).toBe('');
  });

  test.each<{ name: string; text: string; reason: RegExp }>([
    { name: 'another protocol', text: 'SSH-2.0-OpenSSH_10\r\n', reason: /^no HTTP \(HPE_\w+\)$/ },
    {
      name: 'headers without an end',
      text: `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`,
      reason: /^no HTTP \(HPE_HEADER_OVERFLOW\)$/,
    },
    { name: 'hanging up', text: '', reason: /^connection reset$/ },
  ])('$name', async ({ text, reason }) => {
    const port = await tcpServer((socket) => void socket.end(text));
    expect(await reasonOf(target(port, http()))).toMatch(reason);
  });
});

describe('grpc', () => {
  const grpc = (service = '') => ({ grpc: { service } });

  test.each<{ name: string; answer: HealthCheckResponse | Partial<ServiceError>; reason: string }>([
    { name: 'serving', answer: { status: Serving.SERVING }, reason: '' },
    { name: 'not serving', answer: { status: Serving.NOT_SERVING }, reason: 'it says NOT_SERVING' },
    { name: 'unknown', answer: { status: Serving.UNKNOWN }, reason: 'it says UNKNOWN' },
    { name: 'no such service', answer: { code: status.NOT_FOUND, details: '\u001b[2J' }, reason: 'it does not know the service' },
    { name: 'a failure', answer: { code: status.INTERNAL, details: 'secret' }, reason: 'gRPC status INTERNAL' },
  ])('$name', async ({ answer, reason }) => {
    const port = await grpcServer(() => answer);
    expect(await reasonOf(target(port, grpc()))).toBe(reason);
  });

  test('asks for the service', async () => {
    const port = await grpcServer((service) => ({ status: service === 'my.Service' ? Serving.SERVING : Serving.NOT_SERVING }));
    expect([await reasonOf(target(port, grpc('my.Service'))), await reasonOf(target(port, grpc('other')))]).toEqual([
      '',
      'it says NOT_SERVING',
    ]);
  });

  test('a server without the health service', async () => {
    const server = new GrpcServer();
    const port = await new Promise<number>((resolve) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, bound) => resolve(bound)),
    );
    closers.push(async () => server.forceShutdown());
    expect(await reasonOf(target(port, grpc()))).toBe('it has no gRPC health service');
  });

  test('no gRPC at all', async () => {
    const port = await httpServer((_, response) => response.end('ok'));
    expect(await reasonOf(target(port, grpc()))).toBe('no gRPC server answers');
  });
});
