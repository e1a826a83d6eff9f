import { describe, expect, test } from 'vitest';
import { vipRange } from '../../../src/domain/dataplane/vip.js';
import type { Resource } from '../../../src/domain/resource/model.js';
import { planDelete, planVipRange, type ResourcePlan } from '../../../src/domain/resource/plan.js';
import { endpoints, SmallCluster, service, serviceRef } from '../../support/small-cluster.js';

/** A plan as text: keys for resources whose content is not the point, values for addresses. */
function show(plan: ReturnType<SmallCluster['plan']>): object {
  if ('problems' in plan)
    return { problems: plan.problems.map(({ document, path, message }) => `${document} ${path}: ${message}`) };
  return {
    changes: plan.changes.map(({ key, value }) => (value === null || key.startsWith('vip/') ? `${key} = ${value}` : key)),
    preconditions: plan.preconditions.map(({ key, revision }) => `${key} @ ${revision}`),
    resources: plan.resources.map(({ ref, action, before, after, vip }) => {
      const sources = `${before?.source ?? '-'} > ${after?.source ?? '-'}`;
      return `${action} ${ref.kind.toLowerCase()}/${ref.name} ${sources}${vip === undefined ? '' : ` ${vip}`}`;
    }),
  };
}

const problemsOf = (plan: ReturnType<SmallCluster['plan']>) => show(plan);
const twoPorts = {
  ports: [
    { name: 'http', port: 80 },
    { name: 'metrics', port: 90 },
  ],
};

describe('planApply', () => {
  test('a new service: its text, its address, and that neither was there', () => {
    const plan = new SmallCluster().plan([service('a', { endpoints: [{ address: '127.0.0.1', port: 18_081 }] })]);
    expect(plan).toEqual({
      changes: [
        {
          key: 'service/default/a',
          value:
            '{"kind":"Service","metadata":{"labels":{},"name":"a","namespace":"default"},"source":"test","spec":{"balance":{"algorithm":"random","locality":"any"},' +
            '"drain":{"timeout":"30s"},"endpoints":[{"address":"127.0.0.1","name":"ep-127-0-0-1-18081","port":18081,"weight":1}],' +
            '"ports":[{"name":"http","port":80,"protocol":"tcp","targetPort":80}]}}',
        },
        { key: 'vip/10.192.0.2', value: '{"service":"default/a"}' },
      ],
      preconditions: [
        { key: 'service/default/a', revision: 0n },
        { key: 'vip/10.192.0.2', revision: 0n },
      ],
      resources: [
        {
          ref: { kind: 'Service', namespace: 'default', name: 'a' },
          action: 'created',
          before: undefined,
          after: { ...service('a', { endpoints: [{ address: '127.0.0.1', port: 18_081 }] }), source: 'test' },
          vip: '10.192.0.2',
        },
      ],
    });
  });

  test.each<{
    name: string;
    /** Applied one after the other, with an address for each new service from .2. */
    there: readonly (readonly [by: string, ...resources: readonly Resource[]])[];
    request: readonly Resource[];
    by?: string;
    prune?: boolean;
    plan: object;
  }>([
    { name: 'nothing', there: [], request: [], plan: { changes: [], preconditions: [], resources: [] } },
    {
      name: 'the same again changes nothing at all',
      there: [['test', service('a'), endpoints('e', 'a', { address: '127.0.0.1' })]],
      request: [service('a'), endpoints('e', 'a', { address: '127.0.0.1' })],
      plan: {
        changes: [],
        preconditions: [],
        resources: ['unchanged service/a test > test 10.192.0.2', 'unchanged endpoints/e test > test'],
      },
    },
    {
      name: 'the same from another source that does not prune stays with the former',
      there: [['first', service('a')]],
      request: [service('a')],
      plan: { changes: [], preconditions: [], resources: ['unchanged service/a first > first 10.192.0.2'] },
    },
    {
      name: 'the same from another source that prunes becomes its own',
      there: [['first', service('a')]],
      request: [service('a')],
      prune: true,
      plan: {
        changes: ['service/default/a'],
        preconditions: ['service/default/a @ 1'],
        resources: ['unchanged service/a first > test 10.192.0.2'],
      },
    },
    {
      name: 'an update touches the resource alone, and what stays as it is has to stay until then',
      there: [
        ['test', service('a')],
        ['test', service('b')],
      ],
      request: [service('a', { drain: { timeout: '1s' } }), service('b')],
      plan: {
        changes: ['service/default/a'],
        preconditions: ['service/default/a @ 1', 'service/default/b @ 2'],
        resources: ['updated service/a test > test 10.192.0.2', 'unchanged service/b test > test 10.192.0.3'],
      },
    },
    {
      name: 'an update by another source takes the resource over',
      there: [['first', service('a')]],
      request: [service('a', { drain: { timeout: '1s' } })],
      plan: {
        changes: ['service/default/a'],
        preconditions: ['service/default/a @ 1'],
        resources: ['updated service/a first > test 10.192.0.2'],
      },
    },
    {
      name: 'pruning removes what the same source applied, in the order of keys, and nothing of others',
      there: [
        ['test', service('z'), service('b'), endpoints('e', 'b', { address: '127.0.0.1' })],
        ['other', service('o')],
        ['test', service('a')],
      ],
      request: [service('z'), service('n')],
      prune: true,
      plan: {
        changes: [
          'endpoints/default/e = null',
          'service/default/a = null',
          'service/default/b = null',
          'service/default/n',
          'vip/10.192.0.5 = {"releasedAt":1000000,"service":"default/a"}',
          'vip/10.192.0.3 = {"releasedAt":1000000,"service":"default/b"}',
          'vip/10.192.0.6 = {"service":"default/n"}',
        ],
        preconditions: [
          'endpoints/default/e @ 1',
          'service/default/a @ 3',
          'service/default/b @ 1',
          'service/default/n @ 0',
          'vip/10.192.0.5 @ 3',
          'vip/10.192.0.3 @ 1',
          'vip/10.192.0.6 @ 0',
          'service/default/z @ 1',
        ],
        resources: [
          'deleted endpoints/e test > -',
          'deleted service/a test > -',
          'deleted service/b test > -',
          'unchanged service/z test > test 10.192.0.2',
          'created service/n - > test 10.192.0.6',
        ],
      },
    },
    {
      name: 'pruning with nothing removes all of the source',
      there: [
        ['test', service('a')],
        ['other', service('o')],
      ],
      request: [],
      prune: true,
      plan: {
        changes: ['service/default/a = null', 'vip/10.192.0.2 = {"releasedAt":1000000,"service":"default/a"}'],
        preconditions: ['service/default/a @ 1', 'vip/10.192.0.2 @ 1'],
        resources: ['deleted service/a test > -'],
      },
    },
    {
      name: 'without --prune what is not named stays',
      there: [['test', service('a')]],
      request: [service('b')],
      plan: {
        changes: ['service/default/b', 'vip/10.192.0.3 = {"service":"default/b"}'],
        preconditions: ['service/default/b @ 0', 'vip/10.192.0.3 @ 0'],
        resources: ['created service/b - > test 10.192.0.3'],
      },
    },
    {
      name: 'an asked address is not taken away by a sibling that takes any, and the answer is in the order of the request',
      there: [],
      request: [service('any'), service('asks', { vip: '10.192.0.2' }), service('also')],
      plan: {
        changes: [
          'service/default/asks',
          'service/default/any',
          'service/default/also',
          'vip/10.192.0.2 = {"service":"default/asks"}',
          'vip/10.192.0.3 = {"service":"default/any"}',
          'vip/10.192.0.4 = {"service":"default/also"}',
        ],
        preconditions: [
          'service/default/asks @ 0',
          'service/default/any @ 0',
          'service/default/also @ 0',
          'vip/10.192.0.2 @ 0',
          'vip/10.192.0.3 @ 0',
          'vip/10.192.0.4 @ 0',
        ],
        resources: [
          'created service/any - > test 10.192.0.3',
          'created service/asks - > test 10.192.0.2',
          'created service/also - > test 10.192.0.4',
        ],
      },
    },
    {
      name: 'naming the address that a service has keeps it',
      there: [['test', service('a')]],
      request: [service('a', { vip: '10.192.0.2' })],
      plan: {
        changes: ['service/default/a'],
        preconditions: ['service/default/a @ 1'],
        resources: ['updated service/a test > test 10.192.0.2'],
      },
    },
    {
      name: 'no longer naming it keeps it as well',
      there: [['test', service('a', { vip: '10.192.0.77' })]],
      request: [service('a')],
      plan: {
        changes: ['service/default/a'],
        preconditions: ['service/default/a @ 1'],
        resources: ['updated service/a test > test 10.192.0.77'],
      },
    },
  ])('$name', ({ there, request, by, prune, plan }) => {
    const cluster = new SmallCluster();
    for (const [from, ...resources] of there) cluster.apply(resources, { by: from });
    expect(show(cluster.plan(request, { ...(by && { by }), ...(prune && { prune }) }))).toEqual(plan);
  });

  test.each<{
    name: string;
    there: readonly Resource[];
    request: readonly Resource[];
    prune?: boolean;
    problems: readonly string[];
  }>([
    {
      name: 'a resource that stands in the request twice',
      there: [],
      request: [
        service('a'),
        endpoints('a', 'a'),
        service('a', { drain: { timeout: '1s' } }),
        service('a', {}, { namespace: 'x' }),
      ],
      problems: ['2 metadata.name: service/a is in the request already'],
    },
    {
      name: 'a resource of another namespace that stands there twice',
      there: [],
      request: [service('a', {}, { namespace: 'x' }), service('a', {}, { namespace: 'x' })],
      problems: ['1 metadata.name: service/a (namespace x) is in the request already'],
    },
    {
      name: 'endpoints after the service that contradicts them, in one request',
      there: [],
      request: [service('a', twoPorts), endpoints('e', 'a', { address: '127.0.0.1' }, { address: '127.0.0.1', port: 1 })],
      problems: ['1 spec.endpoints[1].port: expected ports by name, since the service has several: http, metrics'],
    },
    {
      name: 'endpoints before it',
      there: [],
      request: [endpoints('e', 'a', { address: '127.0.0.1', ports: { grpc: 1 } }), service('a')],
      problems: ['0 spec.endpoints[0].ports.grpc: expected a port name of the service, http, found "grpc"'],
    },
    {
      name: 'endpoints for a service that is there',
      there: [service('a', twoPorts)],
      request: [endpoints('e', 'a', { address: '127.0.0.1', port: 1 })],
      problems: ['0 spec.endpoints[0].port: expected ports by name, since the service has several: http, metrics'],
    },
    {
      name: 'a service for endpoints that are there',
      there: [endpoints('e', 'a', { address: '127.0.0.1', ports: { http: 1, grpc: 2 } }, { address: '::1', port: 1 })],
      request: [service('a', twoPorts)],
      problems: [
        '0 spec.ports: endpoints/e has spec.endpoints[0].ports.grpc: expected a port name of the service, http, metrics, found "grpc"',
        '0 spec.ports: endpoints/e has spec.endpoints[1].port: expected ports by name, since the service has several: http, metrics',
      ],
    },
    {
      name: 'an edit of a service that its endpoints contradict',
      there: [service('a'), endpoints('e', 'a', { address: '127.0.0.1', ports: { http: 1 } })],
      request: [service('a', { ports: [{ name: 'web', port: 80 }] })],
      problems: [
        '0 spec.ports: endpoints/e has spec.endpoints[0].ports.http: expected a port name of the service, web, found "http"',
      ],
    },
    {
      name: 'two services that ask for one address',
      there: [],
      request: [service('a', { vip: '10.192.0.9' }), service('b', { vip: '10.192.0.9' })],
      problems: ['1 spec.vip: 10.192.0.9 belongs to default/a'],
    },
    {
      name: 'addresses that are taken, outside, not for use, or of the other family',
      there: [service('a')],
      request: ['10.192.0.2', '10.193.0.2', '10.192.0.1', '10.192.0.0', '10.192.255.255', 'fd00::2'].map((vip, index) =>
        service(`new-${index}`, { vip }),
      ),
      problems: [
        '0 spec.vip: 10.192.0.2 belongs to default/a',
        '1 spec.vip: 10.193.0.2 is not in the range 10.192.0.0/16',
        '2 spec.vip: 10.192.0.1 is not in the range 10.192.0.0/16',
        '3 spec.vip: 10.192.0.0 is not in the range 10.192.0.0/16',
        '4 spec.vip: 10.192.255.255 is not in the range 10.192.0.0/16',
        '5 spec.vip: fd00::2 is not in the range 10.192.0.0/16',
      ],
    },
    {
      name: 'an edit that would change the address',
      there: [service('a')],
      request: [service('a', { vip: '10.192.0.3' })],
      problems: ['0 spec.vip: default/a has the address 10.192.0.2; an edit cannot change it'],
    },
    {
      name: 'an address that the same request releases',
      there: [service('a')],
      request: [service('b', { vip: '10.192.0.2' })],
      prune: true,
      problems: ['0 spec.vip: 10.192.0.2 was released by default/a; free in 65 s'],
    },
    {
      name: 'the first twenty problems, in the order of the documents',
      there: [],
      request: [service('any'), ...Array.from({ length: 30 }, (_, index) => service(`s${index}`, { vip: '10.1.1.1' }))],
      problems: Array.from({ length: 20 }, (_, index) => `${index + 1} spec.vip: 10.1.1.1 is not in the range 10.192.0.0/16`),
    },
  ])('refused: $name', ({ there, request, prune = false, problems }) => {
    const cluster = new SmallCluster();
    cluster.apply(there);
    expect(problemsOf(cluster.plan(request, { prune }))).toEqual({ problems });
  });

  test.each<{ name: string; there: readonly Resource[]; request: readonly Resource[] }>([
    {
      name: 'the service and its endpoints change together',
      there: [service('a'), endpoints('e', 'a', { address: '127.0.0.1', port: 1 })],
      request: [service('a', twoPorts), endpoints('e', 'a', { address: '127.0.0.1', ports: { metrics: 1 } })],
    },
    {
      name: 'the endpoints that contradict it are pruned',
      there: [service('a'), endpoints('e', 'a', { address: '127.0.0.1', port: 1 })],
      request: [service('a', twoPorts)],
    },
    {
      name: 'the service that contradicts them is pruned',
      there: [service('a', twoPorts)],
      request: [endpoints('e', 'a', { address: '127.0.0.1', port: 1 })],
    },
    {
      name: 'the endpoints go to another service',
      there: [service('a'), service('b'), endpoints('e', 'a', { address: '127.0.0.1', port: 1 })],
      request: [service('a', twoPorts), service('b'), endpoints('e', 'b', { address: '127.0.0.1', port: 1 })],
    },
  ])('no contradiction: $name', ({ there, request }) => {
    const cluster = new SmallCluster();
    cluster.apply(there);
    cluster.apply(request, { prune: true });
    expect(cluster.state.size).toBe(request.length);
  });

  test('a service that is made anew has its address again, and the release is cancelled', () => {
    const cluster = new SmallCluster();
    cluster.apply([service('a')]);
    cluster.now += 1_000;
    cluster.delete(serviceRef('a'));
    cluster.now += 59_000;
    cluster.apply([service('b')]);
    expect(show(cluster.plan([service('a')]))).toEqual({
      changes: ['service/default/a', 'vip/10.192.0.2 = {"service":"default/a"}'],
      preconditions: ['service/default/a @ 0', 'vip/10.192.0.2 @ 2'],
      resources: ['created service/a - > test 10.192.0.2'],
    });
  });

  test('an address that another released can be asked for after 65 s', () => {
    const cluster = new SmallCluster();
    cluster.apply([service('a')]);
    cluster.delete(serviceRef('a'));
    cluster.now += 64_999;
    const asks = service('b', { vip: '10.192.0.2' });
    expect(show(cluster.plan([asks]))).toEqual({ problems: ['0 spec.vip: 10.192.0.2 was released by default/a; free in 1 s'] });
    cluster.now += 1;
    expect(show(cluster.plan([asks]))).toEqual({
      changes: ['service/default/b', 'vip/10.192.0.2 = {"service":"default/b"}'],
      preconditions: ['service/default/b @ 0', 'vip/10.192.0.2 @ 2'],
      resources: ['created service/b - > test 10.192.0.2'],
    });
  });

  test('a full range names when the next address is free', () => {
    const cluster = new SmallCluster('10.192.0.0/28');
    const all = Array.from({ length: 13 }, (_, index) => service(`s${index}`));
    cluster.apply(all);
    const exhausted = (when: string) => ({ problems: [`0 spec.vip: no address left in 10.192.0.0/28: ${when}`] });
    expect(show(cluster.plan([service('n')]))).toEqual(exhausted('all of them are in use'));
    expect(show(cluster.plan([service('n'), ...all.slice(1)], { prune: true }))).toEqual(exhausted('the next is free in 65 s'));

    cluster.delete(serviceRef('s5'));
    cluster.now += 10_000;
    cluster.delete(serviceRef('s3'));
    expect(show(cluster.plan([service('n')]))).toEqual(exhausted('the next is free in 55 s'));
    cluster.now += 55_000;
    cluster.apply([service('n')]);
    expect(cluster.state.vips.ofService('default/n' as never)).toBe('10.192.0.7');
    expect(show(cluster.plan([service('o')]))).toEqual(exhausted('the next is free in 10 s'));
  });
});

describe('planDelete', () => {
  const cluster = new SmallCluster();
  cluster.apply([service('a'), service('b'), endpoints('e', 'a')]);

  test('a service goes and its address rests; its endpoints stay', () => {
    const plan = planDelete([serviceRef('a')], cluster.context);
    expect(show(plan)).toEqual({
      changes: ['service/default/a = null', 'vip/10.192.0.2 = {"releasedAt":1000000,"service":"default/a"}'],
      preconditions: ['service/default/a @ 1', 'vip/10.192.0.2 @ 1'],
      resources: ['deleted service/a test > -'],
    });
  });

  test('one that is named twice goes once', () => {
    const once = planDelete([serviceRef('a'), { kind: 'Endpoints', namespace: 'default', name: 'e' }], cluster.context);
    const twice = planDelete(
      [serviceRef('a'), { kind: 'Endpoints', namespace: 'default', name: 'e' }, serviceRef('a')],
      cluster.context,
    );
    expect(twice).toEqual(once);
  });

  test('nothing is nothing', () => {
    expect(planDelete([], cluster.context)).toEqual({ changes: [], preconditions: [], resources: [] } satisfies ResourcePlan);
  });

  test.each([
    { kind: 'Service', namespace: 'default', name: 'c', said: 'service/c' },
    { kind: 'Service', namespace: 'x', name: 'a', said: 'service/a (namespace x)' },
    { kind: 'Endpoints', namespace: 'default', name: 'a', said: 'endpoints/a' },
    { kind: 'Service', namespace: 'default', name: 'not a name', said: 'service/not a name' },
    { kind: 'Service', namespace: 'default', name: '', said: 'service/' },
  ] as const)('$said is not there', ({ said, ...ref }) => {
    expect(() => planDelete([serviceRef('a'), ref], cluster.context)).toThrow(
      expect.objectContaining({ code: 'resource.not_found', facts: { problem: said } }),
    );
  });
});

describe('planVipRange', () => {
  test('is written once, and then only checked', () => {
    const cluster = new SmallCluster();
    const changes = planVipRange(cluster.state, vipRange('10.192.0.0/16'));
    expect(changes).toEqual([{ key: 'settings/vip-range', value: '"10.192.0.0/16"' }]);
    cluster.write(...changes);
    expect(planVipRange(cluster.state, vipRange('10.192.0.0/16'))).toEqual([]);
    expect(() => planVipRange(cluster.state, vipRange('10.200.0.0/16'))).toThrow(
      expect.objectContaining({
        code: 'vip.range_changed',
        facts: { problem: 'the log was begun with 10.192.0.0/16, the configuration says 10.200.0.0/16' },
      }),
    );
  });
});
