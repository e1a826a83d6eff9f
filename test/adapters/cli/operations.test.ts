import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import type { FleetStatus, ListenerTraffic } from '../../../src/ports/driving/operations.js';
import { cliRig } from '../../support/cli-rig.js';
import { endpoint } from '../../support/listeners.js';

/** Three minutes after the fake node started. */
function atNoon(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 31, 12, 3) });
}

function stats(id: string, count: number): ListenerTraffic {
  const counters = {
    completed: count,
    failed: 1,
    refused: 2,
    reset: 0,
    drained: 0,
    bytesIn: 2_048 * count,
    bytesOut: 0,
    dialFailures: 0,
    limited: 0,
    evicted: 0,
    dropped: 0,
    protocol: 'tcp' as const,
    declaredEndpoints: 1,
  };
  const endpoints = [{ ...endpoint(18_081), active: 0, total: count, draining: true, ejected: false }];
  return { id: id as ListenerTraffic['id'], active: 0, ...counters, endpoints };
}

describe('status', () => {
  test('of a node that is well', async () => {
    atNoon();
    const { cli } = await cliRig();
    expect(await cli(['status'])).toEqual({
      code: 0,
      err: '',
      out: [
        'NODE        n1',
        'state       ready',
        'mode        dev',
        'version     1.2.3',
        'up          3m',
        'data        /data',
        'log         revision 7, 3 objects, current 1s ago',
        'data plane  2 threads, 3 of 100 listeners, 5 of 4096 connections',
        'metrics     http://127.0.0.1:9193/metrics',
        '',
        'SUBSYSTEM  STATE  SINCE  REASON',
        'dataplane  ready  3m',
        '',
      ].join('\n'),
    });
    vi.useRealTimers();
  });

  test('of one that is degraded: what, since when, what to do; code 4 in every format', async () => {
    atNoon();
    const { cli, operations } = await cliRig();
    const problem = { subject: 'log', reason: 'stale', since: Date.UTC(2026, 0, 31, 12, 1), remedy: 'see the log' };
    operations.current = {
      ...operations.current,
      ready: false,
      metricsListen: '',
      problems: [problem, { ...problem, since: undefined }],
    };
    const { code, out } = await cli(['status']);
    expect(code).toBe(4);
    expect(out.split('\n')).toEqual(expect.arrayContaining(['state       degraded', 'metrics     off']));
    expect(out.slice(out.indexOf('PROBLEM'))).toBe(
      [
        'PROBLEM  REASON  SINCE  WHAT TO DO',
        'log      stale   2m     see the log',
        'log      stale   -      see the log',
        '',
      ].join('\n'),
    );
    vi.useRealTimers();
    const json = await cli(['status', '-o', 'json']);
    expect([json.code, JSON.parse(json.out)]).toMatchObject([
      4,
      { nodeId: 'n1', log: { revision: 7 }, problems: [{ subject: 'log' }, {}] },
    ]);
    expect(parse((await cli(['status', '-o', 'yaml'])).out)).toEqual(JSON.parse(json.out));
  });

  test('of an agent: its link', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 31, 12, 3) });
    const { cli, operations } = await cliRig();
    const noon = Date.UTC(2026, 0, 31, 12);
    const row = async (name: string) => (await cli(['status'])).out.split('\n').find((line) => line.startsWith(name));
    const none = { lostSince: undefined, nextAttemptAt: undefined, lastError: undefined };
    const server = { id: 's1', fleet: 'f1', epoch: 7n };
    const connected = { since: noon, address: 'cp:9192', server, skewMs: -3, beatMs: 2_000 };
    operations.current = { ...operations.current, link: { ...none, connected } };
    expect(await row('link')).toBe(
      'link        up for 3m with cp:9192, server s1, epoch 7, its clock -3 ms from ours, answered 2s ago',
    );
    const older = { ...connected, server: undefined, skewMs: undefined, beatMs: undefined };
    operations.current = { ...operations.current, link: { ...none, connected: older } };
    expect(await row('link')).toBe('link        up for 3m with cp:9192');
    const lastError = { message: 'cp:9192 does not answer: ECONNREFUSED', at: noon + 120_000 };
    const lost = { connected: undefined, lostSince: noon, nextAttemptAt: noon + 190_000, lastError };
    operations.current = { ...operations.current, link: lost };
    expect(await row('link')).toBe('link        down for 3m, next try in 10s');
    expect(await row('last error')).toBe('last error  60s ago: cp:9192 does not answer: ECONNREFUSED');
    const { link } = JSON.parse((await cli(['status', '-o', 'json'])).out);
    expect(link).toMatchObject({ connectedSinceMs: 0, lostSinceMs: noon, lastError: lastError.message });
    vi.useRealTimers();
  });

  test('of an agent: its part in the virtual IP', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 31, 12, 3) });
    const { cli, operations } = await cliRig();
    const since = Date.UTC(2026, 0, 31, 12);
    const counts = { taken: 1, removedByOthers: 0, dropped: { gap: 0, silence: 0, conflict: 0, expired: 0 } };
    const vip = { address: '10.9.0.100', held: true, since, leftMs: 23_000, generation: 7n, alone: false, counts };
    const row = async () => (await cli(['status'])).out.split('\n').find((line) => line.startsWith('virtual'));
    operations.current = { ...operations.current, vip };
    expect(await row()).toBe('virtual IP  10.9.0.100 here for 3m, for 23s more unless it is confirmed, generation 7');
    operations.current = { ...operations.current, vip: { ...vip, alone: true } };
    expect(await row()).toContain('generation 7, held without the control plane');
    operations.current = { ...operations.current, vip: { ...vip, held: false, leftMs: 0 } };
    expect(await row()).toBe('virtual IP  10.9.0.100 not here, generation 7');
    const json = JSON.parse((await cli(['status', '-o', 'json'])).out);
    expect(json.vip).toMatchObject({ address: '10.9.0.100', held: false, generation: 7 });
    vi.useRealTimers();
  });

  test('of a control plane: its fleet, its replicas, its stores and its certificates, and no data plane', async () => {
    atNoon();
    const { cli, operations } = await cliRig();
    const [name, backend] = ['control' as const, 'etcd' as const];
    const silentFor12s = Date.UTC(2026, 0, 31, 12, 2, 48);
    const fleet: FleetStatus = {
      ...{ server: 's1', nodes: 3, online: 1, offline: 1, unknown: 1, unanswered: 4, links: 1, followers: 1 },
      replicas: [
        { id: 's1', silentMs: 0 },
        { id: 's2', silentMs: 3_400 },
      ],
      stores: [
        { name, backend, failingSince: undefined, answeredInMs: 3.0615 },
        { name: 'log', backend, failingSince: silentFor12s, answeredInMs: 2 },
        { name, backend: 'embedded', failingSince: undefined, answeredInMs: undefined },
      ],
      certificates: [
        { name: 'nodes', expiresAt: Date.UTC(2026, 3, 30) },
        { name: 'node root', expiresAt: Date.UTC(2026, 0, 30, 12, 3) },
      ],
    };
    operations.current = { ...operations.current, mode: 'production', dataPlane: undefined, fleet };
    expect((await cli(['status'])).out).toBe(
      [
        'NODE           n1',
        'state          ready',
        'mode           production',
        'version        1.2.3',
        'up             3m',
        'data           /data',
        'log            revision 7, 3 objects, current 1s ago',
        'metrics        http://127.0.0.1:9193/metrics',
        'replica        s1',
        'others         s2 3s ago',
        'fleet          3 nodes: 1 online, 1 offline, 1 unknown; 4 unanswered instructions',
        'links          1 nodes, 1 of them follow the log here',
        'control store  etcd, answered in 3.1 ms',
        'log store      etcd, does not answer for 12s',
        'control store  embedded, not asked yet',
        '',
        'SUBSYSTEM  STATE  SINCE  REASON',
        'dataplane  ready  3m',
        '',
        'CERTIFICATE  ENDS',
        'nodes        2026-04-30  in 88d',
        'node root    2026-01-30  24h ago',
        '',
      ].join('\n'),
    );
    const { fleet: shown, dataPlane } = JSON.parse((await cli(['status', '-o', 'json'])).out);
    expect(shown).toMatchObject({ nodes: 3, links: 1, replicas: [{}, { id: 's2', silentMs: 3_400 }] });
    expect(dataPlane).toBeUndefined();
    vi.useRealTimers();
  });

  test('of one that is not ready yet', async () => {
    const { cli, operations } = await cliRig();
    operations.current = { ...operations.current, ready: false };
    expect(await cli(['status'])).toMatchObject({ code: 0, out: expect.stringContaining('state       starting\n') });
  });
});

describe('events', () => {
  const line = '2026-01-31T12:00:00.000Z  info  service a  drained\n';

  test('those that are kept', async () => {
    const { cli, operations } = await cliRig();
    operations.tell({ subject: 'service a', message: 'drained' });
    expect(await cli(['events'])).toEqual({ code: 0, out: line, err: '' });
    const event = { sequence: 1, severity: 'info', subject: 'service a', message: 'drained', time: '2026-01-31T12:00:00.000Z' };
    expect(JSON.parse((await cli(['events', '-o', 'json'])).out)).toEqual(event);
    expect(parse((await cli(['events', '-o', 'yaml'])).out.slice(4))).toEqual(event);
  });

  test('and new ones until interrupted, which is no failure', async () => {
    const { cli, operations } = await cliRig();
    operations.tell({ subject: 'service a', message: 'drained' });
    const abort = new AbortController();
    const onOut = (out: string) => {
      if (out === line) operations.tell({ subject: 'service b', message: 'new' });
      else abort.abort();
    };
    const ran = await cli(['events', '-w'], { signal: abort.signal, onOut });
    expect(ran).toEqual({ code: 0, out: `${line}2026-01-31T12:00:00.000Z  info  service b  new\n`, err: '' });
  });
});

describe('top', () => {
  test('rates between two samples, the busiest first; what began anew counts from nothing', async () => {
    const { cli, operations } = await cliRig();
    operations.listeners = [stats('default/idle/http', 5), stats('default/anew/http', 100), stats('default/busy/http', 0)];
    const running = cli(['top']);
    setTimeout(() => {
      operations.listeners = [stats('default/idle/http', 5), stats('default/anew/http', 1), stats('default/busy/http', 10)];
    }, 300);
    expect(await running).toEqual({
      code: 0,
      err: '',
      out: [
        'NAMESPACE  SERVICE  PORT  ACTIVE  NEW/s  IN/s      OUT/s  TOTAL  FAILED  SPREAD',
        'default    busy     http  0       10.0   20.0 KiB  0 B    13     3       127.0.0.1:18081=10 (draining)',
        'default    idle     http  0       0.0    0 B       0 B    8      3       127.0.0.1:18081=5 (draining)',
        'default    anew     http  0       0.0    0 B       0 B    4      3       127.0.0.1:18081=1 (draining)',
        '',
      ].join('\n'),
    });
  });

  test('on a terminal again and again until interrupted', async () => {
    const { cli } = await cliRig();
    const abort = new AbortController();
    const onOut = (out: string) => {
      if (out.split('NAMESPACE').length === 3) abort.abort();
    };
    const ran = await cli(['top'], { interactive: true, signal: abort.signal, onOut });
    expect(ran).toMatchObject({ code: 0, err: '' });
  });

  test('as data', async () => {
    const { cli, operations } = await cliRig();
    operations.listeners = [stats('default/a/http', 5), stats('prod/b/http', 5)];
    const { out } = await cli(['top', '-o', 'json', '-n', 'prod']);
    expect(JSON.parse(out).services).toMatchObject([{ namespace: 'prod', service: 'b', completed: 5, newPerSecond: 0 }]);
  });
});
