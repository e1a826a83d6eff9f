import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileServices, L4Compiler } from '../../../src/domain/dataplane/compile.js';
import { formatHealthRecord, healthKey } from '../../../src/domain/dataplane/health.js';
import type { L4Listener } from '../../../src/domain/dataplane/model.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { qualifiedName, type Resource } from '../../../src/domain/resource/model.js';
import { endpoints, SmallCluster, service } from '../../support/small-cluster.js';

const here = 'here' as NodeName;
const a = qualifiedName('default', 'a');
const unhealthy = { healthy: false, reason: 'connection refused', since: 5, node: here };
const healthy = { healthy: true, reason: '', since: 5, node: here };

function cluster(...resources: readonly Resource[]): SmallCluster {
  const made = new SmallCluster();
  made.apply(resources);
  return made;
}

function listeners(...resources: readonly Resource[]): readonly L4Listener[] {
  return [...compileServices(cluster(...resources).state, here).values()];
}

/** `address:port/tier` of the first listener. */
function used(made: SmallCluster): readonly string[] {
  const [listener] = compileServices(made.state, here).values();
  return listener?.endpoints.map(({ address, port, tier }) => `${address} ${port}/${tier}`) ?? [];
}

describe('what a listener has by its protocol', () => {
  const both = [{ port: 53 }, { port: 53, protocol: 'udp' }];
  test.each<{ name: string; spec: object; tcp: object; udp: object }>([
    {
      name: 'nothing said',
      spec: {},
      tcp: { protocol: 'tcp', idleMs: 0, affinityMs: 0, maxConnections: 0, acceptProxy: false, sendProxy: 0 },
      udp: { protocol: 'udp', idleMs: 60_000, affinityMs: 0, maxConnections: 0, acceptProxy: false, sendProxy: 0 },
    },
    { name: 'an idle timeout', spec: { idleTimeout: '2m' }, tcp: { idleMs: 120_000 }, udp: { idleMs: 120_000 } },
    {
      name: 'PROXY headers are for tcp alone',
      spec: { proxyProtocol: { accept: true, send: 'v1' } },
      tcp: { acceptProxy: true, sendProxy: 1 },
      udp: { acceptProxy: false, sendProxy: 0 },
    },
    { name: 'version 2', spec: { proxyProtocol: { send: 'v2' } }, tcp: { acceptProxy: false, sendProxy: 2 }, udp: {} },
    {
      name: 'what is for both',
      spec: {
        affinity: { clientIP: {} },
        limits: { connections: 7 },
        balance: { algorithm: 'source-hash' },
        drain: { timeout: '1s' },
      },
      tcp: { affinityMs: 10_800_000, maxConnections: 7, algorithm: 'source-hash', drainMs: 1_000 },
      udp: { affinityMs: 10_800_000, maxConnections: 7, algorithm: 'source-hash', drainMs: 1_000 },
    },
  ])('$name', ({ spec, tcp, udp }) => {
    const compiled = listeners(service('a', { ports: both, ...spec }));
    expect(compiled.map(({ id, port }) => [id, port])).toEqual([
      ['default/a/tcp-53', 53],
      ['default/a/udp-53', 53],
    ]);
    expect(compiled[0]).toMatchObject(tcp);
    expect(compiled[1]).toMatchObject(udp);
  });
});

describe('locality', () => {
  const list = [
    { address: '10.0.0.1', node: 'there' },
    { address: '10.0.0.2', node: 'here' },
    { address: '10.0.0.3' },
    { address: '127.0.0.1' },
    { address: '127.0.0.2', node: 'there' },
    { address: '::1' },
  ];
  test.each<{ locality: string; used: readonly string[] }>([
    {
      locality: 'any',
      used: ['10.0.0.1 80/0', '10.0.0.2 80/0', '10.0.0.3 80/0', '127.0.0.1 80/0', '127.0.0.2 80/0', '::1 80/0'],
    },
    {
      locality: 'prefer-local',
      used: ['10.0.0.1 80/1', '10.0.0.2 80/0', '10.0.0.3 80/1', '127.0.0.1 80/0', '127.0.0.2 80/1', '::1 80/0'],
    },
    { locality: 'local-only', used: ['10.0.0.2 80/0', '127.0.0.1 80/0', '::1 80/0'] },
  ])('$locality', ({ locality, used: expected }) => {
    expect(used(cluster(service('a', { balance: { locality } }), endpoints('e', 'a', ...list)))).toEqual(expected);
  });

  test('one that is left out hides no other with the same address', () => {
    const made = cluster(
      service('a', { balance: { locality: 'local-only' }, endpoints: [{ address: '10.0.0.1', node: 'there' }] }),
      endpoints('e', 'a', { address: '10.0.0.1', node: 'here' }),
    );
    expect(used(made)).toEqual(['10.0.0.1 80/0']);
  });

  test('a service of a log from before there was locality', () => {
    const made = cluster(service('a', { endpoints: [{ address: '10.0.0.1' }] }));
    const old = { ...service('a', { endpoints: [{ address: '10.0.0.1' }] }), source: 'test' };
    const spec = { ...old.spec, balance: { algorithm: 'random' } };
    made.write({ key: 'service/default/a' as never, value: JSON.stringify({ ...old, spec }) });
    expect(used(made)).toEqual(['10.0.0.1 80/0']);
  });
});

describe('health', () => {
  const checked = (spec: object = {}) =>
    service('a', {
      ports: [
        { name: 'dns', port: 53, protocol: 'udp' },
        { name: 'http', port: 80, targetPort: 8080 },
      ],
      endpoints: [{ address: '10.0.0.1' }, { address: '10.0.0.2', ports: { http: 81 } }],
      health: { tcp: {} },
      ...spec,
    });
  const write = (made: SmallCluster, target: string, record: object | null) =>
    made.write({ key: healthKey(a, target), value: record && formatHealthRecord(record as typeof healthy) });

  test('without a verdict an endpoint is used; an unhealthy one is left out of every port', () => {
    const made = cluster(checked());
    expect(used(made)).toEqual(['10.0.0.1 53/0', '10.0.0.2 53/0']);
    // Where the first tcp port is served is where it is checked.
    write(made, '10.0.0.1:8080', unhealthy);
    write(made, '10.0.0.2:81', healthy);
    const compiled = [...compileServices(made.state, here).values()];
    expect(compiled.map(({ endpoints }) => endpoints.map(({ address }) => address))).toEqual([['10.0.0.2'], ['10.0.0.2']]);
  });

  test("a check's own port is that of every endpoint", () => {
    const made = cluster(checked({ health: { http: { path: '/', port: 9_000 } } }));
    write(made, '10.0.0.2:9000', unhealthy);
    expect(used(made)).toEqual(['10.0.0.1 53/0']);
  });

  test('all unhealthy: none is left, as when none is ready', () => {
    const made = cluster(checked());
    write(made, '10.0.0.1:8080', unhealthy);
    write(made, '10.0.0.2:81', unhealthy);
    expect(used(made)).toEqual([]);
  });

  test('a service that is no longer checked uses what was found unhealthy', () => {
    const made = cluster(checked());
    write(made, '10.0.0.1:8080', unhealthy);
    made.apply([checked({ health: undefined })]);
    expect(used(made)).toHaveLength(2);
  });

  test('a verdict touches its service, and only what it changes is in the delta', () => {
    const made = cluster(checked(), service('b'));
    const compiler = new L4Compiler(here);
    compiler.update(made.state, [a]);
    const delta = (target: string, record: object | null) => {
      const touched = write(made, target, record);
      expect(touched?.services).toEqual(new Set([a]));
      return compiler.update(made.state, touched?.services ?? []).upsert.map(({ id }) => id);
    };
    expect(delta('10.0.0.1:8080', healthy)).toEqual([]);
    expect(delta('10.0.0.1:8080', unhealthy)).toEqual(['default/a/dns', 'default/a/http']);
    expect(delta('10.0.0.1:8080', null)).toEqual(['default/a/dns', 'default/a/http']);
    expect(delta('10.0.0.9:1', unhealthy)).toEqual([]);
  });

  test('law: a state made by entries and one made of a snapshot hold the same verdicts', () => {
    const targets = fc.constantFrom('10.0.0.1:8080', '10.0.0.2:81', '10.0.0.3:1');
    fc.assert(
      fc.property(fc.array(fc.tuple(targets, fc.constantFrom(null, healthy, unhealthy)), { maxLength: 12 }), (list) => {
        const made = cluster(checked());
        const other = cluster(checked());
        write(other, '10.0.0.1:8080', unhealthy);
        for (const [target, record] of list) write(made, target, record);
        const compiler = new L4Compiler(here);
        compiler.update(other.state, [a]);
        const snapshot = made.log.snapshot();
        const touched = other.state.replace({ ...snapshot, cursor: { ...snapshot.cursor, logId: 'another' as never } });
        compiler.update(other.state, touched.services);
        expect(other.state.health.of(a)).toEqual(made.state.health.of(a));
        expect(compiler.table).toEqual(compileServices(made.state, here));
      }),
      { numRuns: 50 },
    );
  });
});
