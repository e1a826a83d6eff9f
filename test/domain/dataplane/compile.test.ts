import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileServices, L4Compiler, listenerId, splitListenerId } from '../../../src/domain/dataplane/compile.js';
import type { L4Delta, L4Listener, L4Table, ListenerId } from '../../../src/domain/dataplane/model.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { type QualifiedName, qualifiedName, type Resource } from '../../../src/domain/resource/model.js';
import { operations, perform } from '../../support/random-operations.js';
import { endpoints, resource, SmallCluster, service, serviceRef } from '../../support/small-cluster.js';

const a = qualifiedName('default', 'a');
const here = 'here' as NodeName;
/** What a listener has that says nothing of all this. */
const plain = { affinityMs: 0, idleMs: 0, maxConnections: 0, acceptProxy: false, sendProxy: 0, refuse: false, path: 'proxy' };
const httpAndMetrics = [
  { name: 'http', port: 80, targetPort: 8080 },
  { name: 'metrics', port: 90 },
];

function tableOf(...resources: readonly Resource[]): readonly L4Listener[] {
  const cluster = new SmallCluster();
  cluster.apply(resources);
  return [...compileServices(cluster.state, here).values()];
}

/** Where connections to each port go, as `address:port*weight`. */
function targets(...resources: readonly Resource[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    tableOf(...resources).map(({ id, endpoints }) => [
      id,
      endpoints.map(({ address, port, weight }) => `${address} ${port}*${weight}`),
    ]),
  );
}

function applied(table: L4Table, { upsert, remove }: L4Delta): L4Table {
  const next = new Map<ListenerId, L4Listener>(table);
  for (const id of remove) next.delete(id);
  for (const listener of upsert) next.set(listener.id, listener);
  return next;
}

test('a listener has all that the data plane needs', () => {
  const spec = {
    ports: httpAndMetrics,
    balance: { algorithm: 'round-robin' },
    drain: { timeout: '5m' },
    endpoints: [{ address: '10.0.0.1', weight: 3 }],
  };
  expect(tableOf(service('a', spec))).toEqual([
    {
      id: 'default/a/http',
      address: '10.192.0.2',
      port: 80,
      protocol: 'tcp',
      algorithm: 'round-robin',
      drainMs: 300_000,
      ...plain,
      endpoints: [{ address: '10.0.0.1', port: 8080, weight: 3, tier: 0, local: false }],
    },
    {
      id: 'default/a/metrics',
      address: '10.192.0.2',
      port: 90,
      protocol: 'tcp',
      algorithm: 'round-robin',
      drainMs: 300_000,
      ...plain,
      endpoints: [{ address: '10.0.0.1', port: 90, weight: 3, tier: 0, local: false }],
    },
  ]);
});

describe('where connections go', () => {
  test.each<{ name: string; resources: readonly Resource[]; to: Readonly<Record<string, readonly string[]>> }>([
    { name: 'no endpoints', resources: [service('a')], to: { 'default/a/http': [] } },
    {
      name: 'the target port defaults to the service port, for each port',
      resources: [service('a', { ports: httpAndMetrics, endpoints: [{ address: '10.0.0.1' }] })],
      to: { 'default/a/http': ['10.0.0.1 8080*1'], 'default/a/metrics': ['10.0.0.1 90*1'] },
    },
    {
      name: "an endpoint's own port overrides it",
      resources: [
        service('a', {
          ports: [{ name: 'http', port: 80, targetPort: 8080 }],
          endpoints: [{ address: '10.0.0.1', port: 18_081 }],
        }),
      ],
      to: { 'default/a/http': ['10.0.0.1 18081*1'] },
    },
    {
      name: 'ports by name override those that are named',
      resources: [service('a', { ports: httpAndMetrics, endpoints: [{ address: '10.0.0.1', ports: { metrics: 1 } }] })],
      to: { 'default/a/http': ['10.0.0.1 8080*1'], 'default/a/metrics': ['10.0.0.1 1*1'] },
    },
    {
      name: 'a port may have a name that objects have',
      resources: [
        service('a', {
          ports: [
            { name: 'constructor', port: 80 },
            { name: 'http', port: 81 },
          ],
          endpoints: [{ address: '10.0.0.1', ports: { http: 1 } }],
        }),
      ],
      to: { 'default/a/constructor': ['10.0.0.1 80*1'], 'default/a/http': ['10.0.0.1 1*1'] },
    },
    {
      name: 'inline endpoints, then those of publishers in the order of their names',
      resources: [
        endpoints('z', 'a', { address: '10.0.0.4' }),
        endpoints('b', 'a', { address: '10.0.0.3' }, { address: '10.0.0.2' }),
        service('a', { endpoints: [{ address: '10.0.0.9' }] }),
        endpoints('other', 'b', { address: '10.0.0.5' }),
      ],
      to: { 'default/a/http': ['10.0.0.9 80*1', '10.0.0.3 80*1', '10.0.0.2 80*1', '10.0.0.4 80*1'] },
    },
    {
      name: 'only publishers of the same namespace',
      resources: [
        service('a'),
        resource('Endpoints', 'e', { service: 'a', endpoints: [{ address: '10.0.0.1' }] }, { namespace: 'x' }),
      ],
      to: { 'default/a/http': [] },
    },
    {
      name: 'one that is not ready gets none',
      resources: [service('a'), endpoints('e', 'a', { address: '10.0.0.1', ready: false }, { address: '10.0.0.2' })],
      to: { 'default/a/http': ['10.0.0.2 80*1'] },
    },
    {
      name: 'the first of two that are the same counts, by port',
      resources: [
        service('a', { ports: httpAndMetrics, endpoints: [{ address: '10.0.0.1', ports: { http: 1 }, weight: 7 }] }),
        endpoints(
          'e',
          'a',
          { address: '10.0.0.1', weight: 9 },
          { address: '10.0.0.1', name: 'n', ports: { http: 1, metrics: 2 } },
        ),
      ],
      to: { 'default/a/http': ['10.0.0.1 1*7', '10.0.0.1 8080*9'], 'default/a/metrics': ['10.0.0.1 90*7', '10.0.0.1 2*1'] },
    },
    {
      name: 'one that is not ready hides no ready one',
      resources: [
        service('a'),
        endpoints('e', 'a', { address: '10.0.0.1', weight: 2, ready: false }),
        endpoints('f', 'a', { address: '10.0.0.1', weight: 3 }),
      ],
      to: { 'default/a/http': ['10.0.0.1 80*3'] },
    },
    {
      name: 'IPv6 with a port is not another IPv6 without',
      resources: [service('a', { endpoints: [{ address: '::1', port: 80 }, { address: '::1:80' }] })],
      to: { 'default/a/http': ['::1 80*1', '::1:80 80*1'] },
    },
    { name: 'Endpoints without a service', resources: [endpoints('e', 'a', { address: '10.0.0.1' })], to: {} },
  ])('$name', ({ resources, to }) => {
    expect(targets(...resources)).toEqual(to);
  });

  test('ports of an endpoint that came before the service had several', () => {
    const cluster = new SmallCluster();
    cluster.apply([service('a'), endpoints('e', 'a', { address: '10.0.0.1', port: 1 })]);
    const two = JSON.stringify({ ...service('a', { ports: httpAndMetrics }), source: 'test' });
    cluster.write({ key: 'service/default/a' as never, value: two });
    expect([...compileServices(cluster.state, here).values()].map(({ endpoints: [first] }) => first?.port)).toEqual([8080, 90]);
  });
});

describe('L4Compiler', () => {
  const compiled = () => {
    const cluster = new SmallCluster();
    const compiler = new L4Compiler(here);
    const update = (services: Iterable<QualifiedName> = []) => {
      const { upsert, remove } = compiler.update(cluster.state, services);
      return { upsert: upsert.map(({ id }) => id), remove };
    };
    const apply = (...resources: readonly Resource[]) => update(cluster.apply(resources).touched?.services);
    return { cluster, compiler, update, apply };
  };

  test.each<{ name: string; change: readonly Resource[]; delta: { upsert: readonly string[]; remove: readonly string[] } }>([
    {
      name: 'labels',
      change: [service('a', { ports: httpAndMetrics }, { labels: { a: 'b' } })],
      delta: { upsert: [], remove: [] },
    },
    {
      name: 'drain',
      change: [service('a', { ports: httpAndMetrics, drain: { timeout: '1s' } })],
      delta: { upsert: ['default/a/http', 'default/a/metrics'], remove: [] },
    },
    {
      name: 'balance',
      change: [service('a', { ports: httpAndMetrics, balance: { algorithm: 'round-robin' } })],
      delta: { upsert: ['default/a/http', 'default/a/metrics'], remove: [] },
    },
    {
      name: "one port's target, without endpoints",
      change: [service('a', { ports: [{ name: 'http', port: 80, targetPort: 1 }, httpAndMetrics[1]] })],
      delta: { upsert: [], remove: [] },
    },
    {
      name: "one port's number",
      change: [service('a', { ports: [{ name: 'http', port: 81 }, httpAndMetrics[1]] })],
      delta: { upsert: ['default/a/http'], remove: [] },
    },
    {
      name: "one port's name",
      change: [service('a', { ports: [{ name: 'web', port: 80 }, httpAndMetrics[1]] })],
      delta: { upsert: ['default/a/web'], remove: ['default/a/http'] },
    },
    {
      name: 'one port less',
      change: [service('a', { ports: [httpAndMetrics[1]] })],
      delta: { upsert: [], remove: ['default/a/http'] },
    },
    {
      name: 'an endpoint of one port',
      change: [endpoints('e', 'b', { address: '10.0.0.1' })],
      delta: { upsert: ['default/b/http'], remove: [] },
    },
    {
      name: 'an endpoint that is not ready',
      change: [endpoints('e', 'b', { address: '10.0.0.1', ready: false })],
      delta: { upsert: [], remove: [] },
    },
    { name: 'another service', change: [service('c')], delta: { upsert: ['default/c/http'], remove: [] } },
  ])('a change of $name', ({ change, delta }) => {
    const { apply } = compiled();
    apply(service('a', { ports: httpAndMetrics }), service('b'));
    expect(apply(...change)).toEqual(delta);
  });

  test('a deleted service goes, and comes back with its address', () => {
    const { cluster, compiler, update, apply } = compiled();
    apply(service('a', { ports: httpAndMetrics }));
    const before = new Map(compiler.table);
    expect(update(cluster.delete(serviceRef('a')).touched?.services)).toEqual({
      upsert: [],
      remove: ['default/a/http', 'default/a/metrics'],
    });
    expect(compiler.table.size).toBe(0);
    apply(service('a', { ports: httpAndMetrics }));
    expect(compiler.table).toEqual(before);
  });

  test('a service whose address is released, or not there, has no listeners', () => {
    const { cluster, update, apply } = compiled();
    apply(service('a'));
    const released = cluster.write({ key: 'vip/10.192.0.2' as never, value: '{"releasedAt":1,"service":"default/a"}' });
    expect(update(released?.services)).toEqual({ upsert: [], remove: ['default/a/http'] });
    const taken = cluster.write({ key: 'vip/10.192.0.2' as never, value: '{"service":"default/b"}' });
    expect(update(taken?.services)).toEqual({ upsert: [], remove: [] });
    expect(compileServices(cluster.state, here).size).toBe(0);
  });

  test('naming a service again, or one that is not there, changes nothing', () => {
    const { update, apply } = compiled();
    apply(service('a'));
    expect(update([a, a, qualifiedName('default', 'none')])).toEqual({ upsert: [], remove: [] });
  });

  test('law: folding gives the table of the whole state, by deltas that hold what differs and no more', () => {
    fc.assert(
      fc.property(operations, fc.nat(59), (list, restartAt) => {
        const cluster = new SmallCluster('10.192.0.0/28');
        const compiler = new L4Compiler(here);
        let copy: L4Table = new Map();
        const follow = (services: Iterable<QualifiedName>) => {
          const wanted = compileServices(cluster.state, here);
          const delta = compiler.update(cluster.state, services);
          expect(delta.remove.toSorted()).toEqual([...copy.keys()].filter((id) => !wanted.has(id)).sort());
          for (const listener of delta.upsert) expect(listener).not.toEqual(copy.get(listener.id));
          copy = applied(copy, delta);
          expect(copy).toEqual(wanted);
          expect(compiler.table).toEqual(wanted);
        };
        for (const [index, operation] of list.entries()) {
          const result = perform(cluster, operation);
          if (result !== undefined && 'touched' in result && result.touched !== undefined) follow(result.touched.services);
          if (index === restartAt) follow(cluster.state.replace(cluster.log.snapshot()).services);
        }
        for (const { endpoints } of copy.values()) {
          expect(new Set(endpoints.map(({ address, port }) => `${address} ${port}`)).size).toBe(endpoints.length);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('law: what replaces a state by that of another log touches all that differs', () => {
    fc.assert(
      fc.property(operations, operations, (before, after) => {
        const [one, two] = [new SmallCluster('10.192.0.0/28'), new SmallCluster('10.192.0.0/28')];
        for (const operation of before) perform(one, operation);
        for (const operation of after) perform(two, operation);
        const compiler = new L4Compiler(here);
        compiler.update(
          one.state,
          [...one.state.all()].map(({ resource: { metadata } }) => qualifiedName(metadata.namespace, metadata.name)),
        );
        const snapshot = two.log.snapshot();
        const touched = one.state.replace({ ...snapshot, cursor: { ...snapshot.cursor, logId: 'another' as never } });
        compiler.update(one.state, touched.services);
        expect(compiler.table).toEqual(compileServices(two.state, here));
      }),
      { numRuns: 50 },
    );
  });
});

test('a listener id names its service and port', () => {
  expect(splitListenerId(listenerId(qualifiedName('prod', 'a'), 'http'))).toEqual({ service: 'prod/a', port: 'http' });
});

describe('J3: onStale', () => {
  const spec = (onStale: object) => service('a', { endpoints: [{ address: '10.0.0.1' }], ...onStale });
  test.each<{ name: string; onStale: object; refuses: readonly boolean[] }>([
    { name: 'not said: serve', onStale: {}, refuses: [false, false] },
    { name: 'serve', onStale: { onStale: 'serve' }, refuses: [false, false] },
    { name: 'refuse', onStale: { onStale: 'refuse' }, refuses: [false, true] },
  ])('$name', ({ onStale, refuses }) => {
    const cluster = new SmallCluster();
    cluster.apply([spec(onStale)]);
    const compiled = [true, false].map((fresh) => [...compileServices(cluster.state, here, fresh).values()]);
    expect(compiled.map((listeners) => listeners.map(({ refuse, endpoints }) => [refuse, endpoints.length]))).toEqual(
      refuses.map((refuse) => [[refuse, 1]]),
    );
  });

  test('a turn of the freshness is a change of the services that refuse, and of nothing else', () => {
    const cluster = new SmallCluster();
    cluster.apply([spec({ onStale: 'refuse' }), service('b')]);
    const compiler = new L4Compiler(here);
    const names = ['a', 'b'].map((name) => qualifiedName('default', name));
    compiler.update(cluster.state, names, true);
    const ids = ({ upsert, remove }: L4Delta) => [...upsert.map(({ id }) => id), ...remove];
    expect(ids(compiler.update(cluster.state, names, false))).toEqual(['default/a/http']);
    expect(ids(compiler.update(cluster.state, names, false))).toEqual([]);
    expect(compiler.table).toEqual(compileServices(cluster.state, here, false));
    expect(ids(compiler.update(cluster.state, names, true))).toEqual(['default/a/http']);
  });
});
