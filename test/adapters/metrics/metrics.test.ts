import { createServer, request } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PrometheusMetrics } from '../../../src/adapters/metrics/prometheus-metrics.js';
import { PrometheusServer, type PrometheusServerParts } from '../../../src/adapters/metrics/prometheus-server.js';
import { addressPort, type PortNumber } from '../../../src/domain/kernel/network.js';
import { outboxSequence } from '../../../src/domain/outbox/model.js';
import type { ListenerTraffic } from '../../../src/ports/driving/operations.js';
import { FakeLogger } from '../../fakes/fake-logger.js';
import { FakeOperations } from '../../fakes/fake-operations.js';
import { endpoint } from '../../support/listeners.js';

function listenerStats(id: string, count: number): ListenerTraffic {
  const counters = { completed: count, failed: 2, refused: 3, reset: 4, drained: 5, bytesIn: 6, bytesOut: 7, dialFailures: 8 };
  const endpoints = [false, true].map((draining, index) => ({
    ...endpoint(index + 1),
    active: 0,
    total: 0,
    draining,
    ejected: false,
  }));
  const more = { limited: 0, evicted: 0, dropped: 0, protocol: 'tcp' as const, declaredEndpoints: 2 };
  return { id: id as ListenerTraffic['id'], active: 1, ...counters, ...more, endpoints };
}

function setUp(parts: Partial<PrometheusServerParts> = {}) {
  const operations = new FakeOperations();
  const state = { listeners: [listenerStats('default/a/http', 9)], runs: 3, dropped: 0n };
  const metrics = new PrometheusMetrics({
    status: () => operations.status(),
    listeners: () => state.listeners,
    outbox: () => ({ depth: 4, capacity: 10, dropped: state.dropped, nextSequence: outboxSequence(5n) }),
    dns: () => ({
      ...{
        queries: [{ type: 'A', rcode: 'NOERROR', count: 3 }],
        cacheHits: 1,
        handedUp: 2,
        droppedQuestions: 4,
        droppedAnswers: 5,
      },
      ...{ truncated: 6, names: 7, cached: 8 },
    }),
    checks: () => ({ targets: 0, succeeded: 0, failed: 0 }),
    reconciles: () => ({ runs: state.runs, seconds: 0.5 }),
  });
  const logger = new FakeLogger();
  const pending: string[] = [];
  const server = new PrometheusServer({
    listen: anyPort,
    mayMove: false,
    metrics,
    pending: () => pending,
    logger,
    ...parts,
  });
  onTestFinished(() => server.stop());
  return { operations, state, metrics, server, pending, logger };
}

/** Of the kernel's choice; no configuration can ask for it. */
const anyPort = { ...known('127.0.0.1:1'), port: 0 as PortNumber };

function known(text: string) {
  const parsed = addressPort(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

/** Series by name and labels; throws on a line that is no part of the text format 0.0.4, whose numbers are those of Go: `Nan` is one. */
function parse(text: string): ReadonlyMap<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || /^# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* \S/.test(line)) continue;
    const match =
      /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*",?)*\})?) (N[Aa][Nn]|[+-]?Inf|[-+.\deE]+)$/.exec(
        line,
      );
    if (match?.[1] === undefined) throw new Error(`not a line of the text format: ${line}`);
    expect(series.has(match[1])).toBe(false);
    series.set(match[1], Number(match[2]));
  }
  return series;
}

const own = (series: ReadonlyMap<string, number>) =>
  Object.fromEntries([...series].filter(([name]) => name.startsWith('holdfast_')));

async function get(address: string, path: string, method = 'GET') {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: string; type: unknown }>();
  request(`http://${address}${path}`, { method }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () =>
      resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString(), type: response.headers['content-type'] }),
    );
  })
    .on('error', reject)
    .end();
  return promise;
}

describe('the text', () => {
  test('holds every series with its value', async () => {
    const { metrics } = setUp();
    const port = 'namespace="default",service="a",port="http"';
    expect(own(parse((await metrics.render()).text))).toEqual({
      [`holdfast_connections_active{${port}}`]: 1,
      [`holdfast_connections_total{${port},result="completed"}`]: 9,
      [`holdfast_connections_total{${port},result="failed"}`]: 2,
      [`holdfast_connections_total{${port},result="refused"}`]: 3,
      [`holdfast_connections_total{${port},result="reset"}`]: 4,
      [`holdfast_connections_total{${port},result="drained"}`]: 5,
      [`holdfast_bytes_total{${port},direction="in"}`]: 6,
      [`holdfast_bytes_total{${port},direction="out"}`]: 7,
      [`holdfast_dial_failures_total{${port}}`]: 8,
      [`holdfast_endpoints{${port},state="serving"}`]: 1,
      [`holdfast_endpoints{${port},state="draining"}`]: 1,
      'holdfast_drops_total{namespace="default",service="a",port="http",reason="limit"}': 0,
      'holdfast_endpoints{namespace="default",service="a",port="http",state="ejected"}': 0,
      'holdfast_endpoints_declared{namespace="default",service="a",port="http"}': 2,
      'holdfast_dns_queries_total{type="A",rcode="NOERROR"}': 3,
      'holdfast_dns_dropped_total{what="question"}': 4,
      'holdfast_dns_dropped_total{what="answer"}': 5,
      ...{ holdfast_dns_cache_hits_total: 1, holdfast_dns_handed_up_total: 2, holdfast_dns_truncated_total: 6 },
      ...{ holdfast_dns_names: 7, holdfast_dns_cached: 8 },
      holdfast_connection_limit: 4_096,
      holdfast_health_targets: 0,
      'holdfast_health_checks_total{result="succeeded"}': 0,
      'holdfast_health_checks_total{result="failed"}': 0,
      'holdfast_build_info{version="1.2.3",mode="dev"}': 1,
      'holdfast_listeners{state="listening"}': 3,
      'holdfast_listeners{state="failed"}': 0,
      holdfast_listener_budget: 100,
      holdfast_log_revision: 7,
      holdfast_log_age_seconds: 1,
      holdfast_objects: 3,
      holdfast_outbox_depth: 4,
      holdfast_outbox_dropped_total: 0,
      holdfast_reconcile_runs_total: 3,
      holdfast_reconcile_seconds_total: 0.5,
      holdfast_ready: 1,
      holdfast_problems: 0,
    });
  });

  test('counters follow their sources, and the series of a deleted service are gone', async () => {
    const { metrics, state } = setUp();
    await metrics.render();
    state.listeners = [listenerStats('prod/b/http', 10)];
    state.runs = 4;
    const series = parse((await metrics.render()).text);
    expect([...series.keys()].filter((name) => name.includes('service="a"'))).toEqual([]);
    expect(series.get('holdfast_connections_total{namespace="prod",service="b",port="http",result="completed"}')).toBe(10);
    expect(series.get('holdfast_reconcile_runs_total')).toBe(4);
  });

  test('several scrapes at once are each whole', async () => {
    const { metrics } = setUp();
    const texts = await Promise.all(Array.from({ length: 10 }, () => metrics.render()));
    const first = own(parse(texts[0]?.text ?? ''));
    for (const { text } of texts) expect(own(parse(text))).toEqual(first);
  });

  test('also tells of the process, which is not measured before the first scrape', async () => {
    const { metrics } = setUp();
    expect([...parse((await metrics.render()).text).keys()]).toContain('process_cpu_seconds_total');
  });
});

describe('the server', () => {
  test('serves metrics, health and readiness', async () => {
    const { server, pending } = setUp();
    expect(server.address).toBe('');
    await server.start();
    const metrics = await get(server.address, '/metrics?x=1');
    expect([metrics.status, metrics.type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(parse(metrics.body).get('holdfast_ready')).toBe(1);
    expect(await get(server.address, '/healthz')).toMatchObject({ status: 200, body: 'ok\n' });
    expect(await get(server.address, '/readyz')).toMatchObject({ status: 200, body: 'ready\n' });
    pending.push('dataplane', 'dns');
    expect(await get(server.address, '/readyz')).toMatchObject({ status: 503, body: 'not ready: dataplane, dns\n' });
    expect(await get(server.address, '/healthz')).toMatchObject({ status: 200 });
    expect(await get(server.address, '/metrics', 'HEAD')).toMatchObject({ status: 200, body: '' });
    expect(await get(server.address, '/metrics', 'POST')).toMatchObject({ status: 405 });
    expect(await get(server.address, '/')).toMatchObject({ status: 404, body: 'see /metrics, /healthz, /readyz\n' });
  });

  test('a source that fails is an answer and a line in the log', async () => {
    const { server, operations, logger } = setUp();
    operations.status = () => {
      throw new Error('a bug');
    };
    await server.start();
    expect(await get(server.address, '/metrics')).toMatchObject({ status: 500 });
    expect(logger.dump()).toBe('error metrics could not be collected');
  });

  test('off is off', async () => {
    const { server } = setUp({ listen: 'off' });
    await server.start();
    expect(server.address).toBe('');
  });

  test('a stop does not wait for connections, and may come twice and before a start', async () => {
    const { server } = setUp();
    await server.stop();
    await server.start();
    const port = Number(server.address.split(':')[1]);
    const idle = createConnection(port, '127.0.0.1').on('error', () => {});
    await new Promise((resolve) => idle.once('connect', resolve));
    await server.stop();
    await server.stop();
    expect(server.address).toBe('');
    idle.destroy();
  });
});

describe('a port that is taken', () => {
  async function taken(holder = createServer()) {
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void holder.close());
    return known(`127.0.0.1:${(holder.address() as AddressInfo).port}`);
  }

  test('gives way to another in dev mode, which is told with both ports', async () => {
    const listen = await taken();
    const { server, logger } = setUp({ listen, mayMove: true });
    await server.start();
    expect(server.address).not.toBe(`127.0.0.1:${listen.port}`);
    expect(await get(server.address, '/healthz')).toMatchObject({ status: 200 });
    const because = `127.0.0.1:${listen.port} cannot be bound: EADDRINUSE`;
    expect(logger.dump()).toBe(`warn metrics: ${because}; they are served on ${server.address} instead`);
  });

  test('is refused in production, and had when it is free; a server that stands stays', async () => {
    const holder = createServer();
    const listen = await taken(holder);
    const { server } = setUp({ listen });
    await expect(server.start()).rejects.toMatchObject({
      code: 'metrics.not_served',
      message: `metrics.not_served: 127.0.0.1:${listen.port} cannot be bound: EADDRINUSE`,
    });
    expect(server.address).toBe('');
    await new Promise((resolve) => holder.close(resolve));
    await server.start();
    await server.start();
    expect(await get(server.address, '/healthz')).toMatchObject({ status: 200 });
  });
});
