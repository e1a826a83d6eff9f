import { expect, test } from 'vitest';
import type { LinkFigures } from '../../../src/adapters/metrics/link-metrics.js';
import { PrometheusMetrics } from '../../../src/adapters/metrics/prometheus-metrics.js';
import type { ListenerTraffic, NodeStatus } from '../../../src/ports/driving/operations.js';
import { address } from '../../support/listeners.js';

const status: NodeStatus = {
  ...{ version: '1', mode: 'dev', nodeId: 'here', hostname: 'here', dataDir: '/', startedAt: 0, ready: true, subsystems: [] },
  log: { revision: 1n, logId: 'log', objects: 0, ageMs: 0 },
  dataPlane: {
    ...{ threads: 2, listeners: 2, listenerBudget: 10, failedListeners: 0, activeConnections: 0 },
    connectionLimit: 4_096,
  },
  metricsListen: '',
  problems: [],
};

const endpoint = { address: address('10.0.0.1'), port: 80, active: 1, total: 2, draining: false, ejected: false };

function traffic(id: string, more: Partial<ListenerTraffic>): ListenerTraffic {
  return {
    ...{ id: id as ListenerTraffic['id'], active: 1, completed: 2, failed: 3, refused: 4, limited: 5, evicted: 6, dropped: 7 },
    ...{
      reset: 8,
      drained: 9,
      bytesIn: 10,
      bytesOut: 11,
      dialFailures: 12,
      endpoints: [],
      protocol: 'tcp',
      declaredEndpoints: 0,
    },
    ...more,
  };
}

/** Series of services, and of checks, in the order of their text. */
async function series(listeners: readonly ListenerTraffic[], metrics?: PrometheusMetrics): Promise<readonly string[]> {
  const made = metrics ?? metricsOf(() => listeners);
  const { text } = await made.render();
  return text
    .split('\n')
    .filter((line) => /^holdfast_[^ ]*(service=|health|limit)/.test(line))
    .map((line) => line.replace('holdfast_', '').replace('namespace="default",service="a",', ''));
}

function metricsOf(listeners: () => readonly ListenerTraffic[], link?: () => LinkFigures): PrometheusMetrics {
  return new PrometheusMetrics({
    status: () => status,
    listeners,
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
    checks: () => ({ targets: 3, succeeded: 20, failed: 1 }),
    outbox: () => ({ depth: 0, capacity: 1, dropped: 0n, nextSequence: 1n as never }),
    reconciles: () => ({ runs: 0, seconds: 0 }),
    ...(link === undefined ? {} : { link }),
  });
}

test('a tcp port', async () => {
  const endpoints = [
    endpoint,
    { ...endpoint, port: 81, ejected: true },
    { ...endpoint, port: 82, draining: true, ejected: true },
    { ...endpoint, port: 83, draining: true },
  ];
  expect(await series([traffic('default/a/http', { endpoints, declaredEndpoints: 5 })])).toEqual([
    'connections_active{port="http"} 1',
    'connections_total{port="http",result="completed"} 2',
    'connections_total{port="http",result="failed"} 3',
    'connections_total{port="http",result="refused"} 4',
    'connections_total{port="http",result="reset"} 8',
    'connections_total{port="http",result="drained"} 9',
    'drops_total{port="http",reason="limit"} 5',
    'bytes_total{port="http",direction="in"} 10',
    'bytes_total{port="http",direction="out"} 11',
    'dial_failures_total{port="http"} 12',
    'endpoints{port="http",state="serving"} 1',
    'endpoints{port="http",state="draining"} 2',
    'endpoints{port="http",state="ejected"} 1',
    'endpoints_declared{port="http"} 5',
    'health_targets 3',
    'health_checks_total{result="succeeded"} 20',
    'health_checks_total{result="failed"} 1',
    'connection_limit 4096',
  ]);
});

test('a udp port has flows, not connections', async () => {
  const lines = await series([traffic('default/a/dns', { protocol: 'udp' })]);
  expect(lines.filter((line) => /^(connections|udp|drops)/.test(line))).toEqual([
    'udp_flows_active{port="dns"} 1',
    'udp_flows_total{port="dns",result="completed"} 2',
    'udp_flows_total{port="dns",result="failed"} 3',
    'udp_flows_total{port="dns",result="refused"} 4',
    'udp_flows_total{port="dns",result="reset"} 8',
    'udp_flows_total{port="dns",result="drained"} 9',
    'drops_total{port="dns",reason="limit"} 5',
    'drops_total{port="dns",reason="evicted"} 6',
    'drops_total{port="dns",reason="datagram"} 7',
  ]);
});

test('how long dials and connections took, in classes that hold the smaller ones; none before there was a connection', async () => {
  const dial = { bounds: [0.001, 0.1], counts: [5, 0, 1], sum: 3.25 };
  const connection = { bounds: [1], counts: [4, 2], sum: 70 };
  const lines = await series([traffic('default/a/http', { times: { dial, connection } }), traffic('default/a/idle', {})]);
  expect(lines.filter((line) => line.includes('_seconds'))).toEqual([
    'dial_seconds_bucket{port="http",le="0.001"} 5',
    'dial_seconds_bucket{port="http",le="0.1"} 5',
    'dial_seconds_bucket{port="http",le="+Inf"} 6',
    'dial_seconds_sum{port="http"} 3.25',
    'dial_seconds_count{port="http"} 6',
    'connection_seconds_bucket{port="http",le="1"} 4',
    'connection_seconds_bucket{port="http",le="+Inf"} 6',
    'connection_seconds_sum{port="http"} 70',
    'connection_seconds_count{port="http"} 6',
  ]);
});

test('a node of a fleet tells of its link and its instructions', async () => {
  const link = { up: true, streams: 3, viewFresh: false, waiting: 1, running: 2, unconfirmed: 4, ended: { done: 5, refused: 6 } };
  const { text } = await metricsOf(
    () => [],
    () => link,
  ).render();
  expect(text.split('\n').filter((line) => /^holdfast_(link|log_view|instructions)/.test(line))).toEqual([
    'holdfast_link_up 1',
    'holdfast_link_streams_total 3',
    'holdfast_log_view_fresh 0',
    'holdfast_instructions{state="waiting"} 1',
    'holdfast_instructions{state="running"} 2',
    'holdfast_instructions{state="unconfirmed"} 4',
    'holdfast_instructions_ended_total{outcome="done"} 5',
    'holdfast_instructions_ended_total{outcome="refused"} 6',
  ]);
});

test('the series of a service that is gone are gone', async () => {
  const histogram = { bounds: [1], counts: [1, 1], sum: 1 };
  const times = { dial: histogram, connection: histogram };
  let listeners = [traffic('default/a/http', { times }), traffic('default/b/dns', { protocol: 'udp' })];
  const metrics = metricsOf(() => listeners);
  expect((await series([], metrics)).filter((line) => line.includes('port='))).toHaveLength(38);
  listeners = [];
  expect((await series([], metrics)).filter((line) => line.includes('port='))).toEqual([]);
});
