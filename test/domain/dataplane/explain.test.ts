import { describe, expect, test } from 'vitest';
import { explainPort, type LiveEndpoint } from '../../../src/domain/dataplane/explain.js';
import { formatHealthRecord, healthKey } from '../../../src/domain/dataplane/health.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { ipAddress } from '../../../src/domain/kernel/network.js';
import { qualifiedName, type Resource } from '../../../src/domain/resource/model.js';
import { endpoints, SmallCluster, service } from '../../support/small-cluster.js';

const here = 'here' as NodeName;
const a = qualifiedName('default', 'a');
const node = { nodeId: here, live: new Map<string, LiveEndpoint>(), fresh: true, kernel: false };
const quiet: LiveEndpoint = { active: 0, draining: false, ejected: false };

interface Situation {
  readonly resources: readonly Resource[];
  readonly unhealthy?: readonly string[];
  readonly live?: Readonly<Record<string, Partial<LiveEndpoint>>>;
  readonly kernel?: boolean;
}

function explain({ resources, unhealthy = [], live = {}, kernel = false }: Situation) {
  const cluster = new SmallCluster();
  cluster.apply(resources);
  for (const target of unhealthy) {
    const value = formatHealthRecord({ healthy: false, reason: 'connection refused', since: 5, node: here });
    cluster.write({ key: healthKey(a, target), value });
  }
  const resource = cluster.state.service(a)?.resource;
  const [port] = resource?.spec.ports ?? [];
  if (resource === undefined || port === undefined) throw new Error('no service');
  const liveOf = new Map(Object.entries(live).map(([target, each]) => [target, { ...quiet, ...each }]));
  return explainPort(cluster.state, resource, port, { ...node, live: liveOf, kernel });
}

/** `target verdict share% reason`, a line each. */
function lines(situation: Situation): readonly string[] {
  const { outcome, endpoints } = explain(situation);
  return [
    outcome,
    ...endpoints.map(({ target, verdict, share, reason }) => `${target} ${verdict} ${Math.round(share * 100)}% ${reason}`.trim()),
  ];
}

test('an endpoint with all that is known of it', () => {
  const resources = [
    service('a', { ports: [{ name: 'http', port: 80 }] }),
    endpoints('e', 'a', { address: '10.0.0.1', node: 'n' }),
  ];
  expect(explain({ resources, live: { '10.0.0.1:80': { active: 4 } } })).toEqual({
    name: 'http',
    port: 80,
    protocol: 'tcp',
    choice: 'each new connection: at random, by weight',
    outcome: 'new connections go to 1 of 1 endpoints',
    endpoints: [
      {
        name: 'ep-10-0-0-1',
        target: '10.0.0.1:80',
        source: 'endpoints/e',
        node: 'n',
        weight: 1,
        tier: 0,
        verdict: 'chosen',
        share: 1,
        reason: '',
        since: undefined,
        active: 4,
      },
    ],
  });
});

describe('why, and why not', () => {
  const two = [{ address: '10.0.0.1', weight: 3 }, { address: '10.0.0.2' }];
  const health = { tcp: {} };
  test.each<{ name: string; situation: Situation; expected: readonly string[] }>([
    {
      name: 'no endpoints',
      situation: { resources: [service('a')] },
      expected: ['new connections are refused: the service has no endpoints'],
    },
    {
      name: 'no endpoints of a udp port',
      situation: { resources: [service('a', { ports: [{ port: 53, protocol: 'udp' }] })] },
      expected: ['new flows are dropped: the service has no endpoints'],
    },
    {
      name: 'shares by weight',
      situation: { resources: [service('a', { endpoints: two })] },
      expected: ['new connections go to 2 of 2 endpoints', '10.0.0.1:80 chosen 75%', '10.0.0.2:80 chosen 25%'],
    },
    {
      name: 'every reason to be left out',
      situation: {
        resources: [
          service('a', { health, balance: { locality: 'local-only' }, endpoints: [{ address: '127.0.0.1' }] }),
          endpoints(
            'e',
            'a',
            { address: '127.0.0.1', name: 'again' },
            { address: '127.0.0.2' },
            { address: '127.0.0.3', ready: false },
            { address: '10.0.0.1', node: 'there' },
            { address: '10.0.0.2' },
          ),
        ],
        unhealthy: ['127.0.0.2:80'],
        live: { '127.0.0.3:80': { active: 1, draining: true }, '10.9.9.9:80': { active: 2, draining: true } },
      },
      expected: [
        'new connections go to 1 of 6 endpoints',
        '127.0.0.1:80 chosen 100%',
        '127.0.0.1:80 duplicate 0% an earlier one has the same address and port',
        '127.0.0.2:80 unhealthy 0% connection refused',
        '127.0.0.3:80 not ready 0% its publisher says so; draining',
        '10.0.0.1:80 other node 0% local-only, and it runs on there',
        '10.0.0.2:80 other node 0% local-only, and it runs on no node that is named',
        '10.9.9.9:80 draining 0% withdrawn; its connections go on until they end or are cut',
      ],
    },
    {
      name: 'all unhealthy',
      situation: { resources: [service('a', { health, endpoints: two })], unhealthy: ['10.0.0.1:80', '10.0.0.2:80'] },
      expected: [
        'new connections are refused: none of its 2 endpoints can be used (2 unhealthy)',
        '10.0.0.1:80 unhealthy 0% connection refused',
        '10.0.0.2:80 unhealthy 0% connection refused',
      ],
    },
    {
      name: 'other nodes stand by',
      situation: {
        resources: [service('a', { balance: { locality: 'prefer-local' }, endpoints: [...two, { address: '127.0.0.1' }] })],
      },
      expected: [
        'new connections go to 1 of 3 endpoints',
        '10.0.0.1:80 standby 0% used when no endpoint of this node can be',
        '10.0.0.2:80 standby 0% used when no endpoint of this node can be',
        '127.0.0.1:80 chosen 100%',
      ],
    },
    {
      name: 'other nodes take over from one that is ejected',
      situation: {
        resources: [service('a', { balance: { locality: 'prefer-local' }, endpoints: [...two, { address: '127.0.0.1' }] })],
        live: { '127.0.0.1:80': { ejected: true } },
      },
      expected: [
        'new connections go to 2 of 3 endpoints',
        '10.0.0.1:80 chosen 75%',
        '10.0.0.2:80 chosen 25%',
        '127.0.0.1:80 ejected 0% its dials failed several times in a row',
      ],
    },
    {
      name: 'all ejected',
      situation: {
        resources: [service('a', { endpoints: two })],
        live: { '10.0.0.1:80': { ejected: true }, '10.0.0.2:80': { ejected: true } },
      },
      expected: [
        'new connections go to 2 of 2 endpoints, all of them ejected and tried nevertheless',
        '10.0.0.1:80 ejected 75% its dials failed several times in a row',
        '10.0.0.2:80 ejected 25% its dials failed several times in a row',
      ],
    },
  ])('$name', ({ situation, expected }) => {
    expect(lines(situation)).toEqual(expected);
  });
});

test.each<{ spec: object; choice: string }>([
  { spec: { balance: { algorithm: 'round-robin' } }, choice: 'connection: in turn, by weight, within each worker thread' },
  {
    spec: { balance: { algorithm: 'least-connections', locality: 'prefer-local' }, limits: { connections: 9 } },
    choice:
      'connection: the one with the fewest open connections for its weight; endpoints of this node first; at most 9 connections at once',
  },
  {
    spec: {
      ports: [{ port: 53, protocol: 'udp' }, { port: 53 }],
      balance: { locality: 'local-only' },
      affinity: { clientIP: { timeout: '1m' } },
      proxyProtocol: { accept: true, send: 'v2' },
    },
    choice: "flow: at random, by weight; endpoints of this node only; a client's address keeps its endpoint for 1m",
  },
  {
    spec: { balance: { algorithm: 'source-hash' }, proxyProtocol: { accept: true, send: 'v2' } },
    choice:
      "connection: by a hash of the client's address, so that one address keeps its endpoint while that is there; clients begin with a PROXY header; endpoints get a PROXY header v2",
  },
])('in words: $choice', ({ spec, choice }) => {
  expect(explain({ resources: [service('a', spec)] }).choice).toBe(`each new ${choice}`);
});

describe('on a node whose kernel carries services', () => {
  test.each<[object, string]>([
    [{}, 'carried by the kernel'],
    [{ dataPath: 'proxy' }, 'carried by the proxy'],
    [{ balance: { algorithm: 'round-robin' } }, "carried by the proxy, as balance.algorithm round-robin is the proxy's alone"],
    [{ idleTimeout: '1m' }, "carried by the proxy, as idleTimeout is the proxy's alone"],
    [{ limits: { connections: 5 } }, "carried by the proxy, as limits.connections is the proxy's alone"],
    [{ proxyProtocol: { send: 'v1' } }, "carried by the proxy, as proxyProtocol is the proxy's alone"],
    [
      { endpoints: [{ address: 'fd00::1' }] },
      'carried by the proxy, as endpoint fd00::1 is of another address family than the service',
    ],
    [
      { endpoints: [{ address: '127.0.0.1' }] },
      'carried by the proxy, as endpoint 127.0.0.1 is reached by programs of this node alone',
    ],
  ])('%j: %s', (spec, path) => {
    const resources = [service('a', { endpoints: [{ address: '10.0.0.1' }], ...spec })];
    expect(explain({ resources, kernel: true }).choice.split('; ').at(-1)).toBe(path);
  });

  test('clients of UDP are told that there is no endpoint', () => {
    const resources = [service('a', { ports: [{ port: 80, protocol: 'udp' }] })];
    expect(explain({ resources, kernel: true }).outcome).toBe('new flows are refused: the service has no endpoints');
    expect(explain({ resources }).outcome).toBe('new flows are dropped: the service has no endpoints');
  });
});

describe('which endpoint a client gets', () => {
  const two = [{ address: '10.0.0.1' }, { address: '10.0.0.2' }];
  const from = (spec: object, address = '192.0.2.1', live = {}, kernel = false) => {
    const cluster = new SmallCluster();
    cluster.apply([service('a', spec)]);
    const resource = cluster.state.service(a)?.resource;
    const client = ipAddress(address);
    const [port] = resource?.spec.ports ?? [];
    if (resource === undefined || port === undefined || client === undefined) throw new Error('no service');
    return explainPort(cluster.state, resource, port, { ...node, live: new Map(Object.entries(live)), kernel }, client).from;
  };

  test('by its hash, spread over all, and always the same', () => {
    const balance = { algorithm: 'source-hash' };
    const targets = Array.from({ length: 50 }, (_, last) => from({ balance, endpoints: two }, `192.0.2.${last}`)?.target);
    expect(new Set(targets)).toEqual(new Set(['10.0.0.1:80', '10.0.0.2:80']));
    expect(Array.from({ length: 50 }, (_, last) => from({ balance, endpoints: two }, `192.0.2.${last}`)?.target)).toEqual(
      targets,
    );
    const ejected = { '10.0.0.1:80': { ...quiet, ejected: true } };
    expect(from({ balance, endpoints: two }, '192.0.2.1', ejected)?.target).toBe('10.0.0.2:80');
  });

  test.each<{ spec: object; target: string; reason: string }>([
    { spec: {}, target: '', reason: 'no endpoint can be used' },
    { spec: { endpoints: two.slice(0, 1) }, target: '10.0.0.1:80', reason: 'it is the only one' },
    { spec: { endpoints: two }, target: '', reason: 'random does not tell beforehand' },
    {
      spec: { endpoints: two, affinity: { clientIP: { timeout: '1m' } }, balance: { algorithm: 'round-robin' } },
      target: '',
      reason: 'round-robin does not tell beforehand; what it was given within 1m it keeps',
    },
  ])('$reason', ({ spec, target, reason }) => {
    expect(from(spec)).toEqual({ address: '192.0.2.1', target, reason });
  });

  test('the kernel has a hash of its own', () => {
    const spec = { balance: { algorithm: 'source-hash' }, endpoints: two };
    const reason = 'source-hash in the kernel does not tell beforehand';
    expect(from(spec, '192.0.2.1', {}, true)).toEqual({ address: '192.0.2.1', target: '', reason });
  });
});

test.each([
  ['tcp', 'new connections are refused: the log cannot be followed, and the service says onStale: refuse'],
  ['udp', 'new flows are dropped: the log cannot be followed, and the service says onStale: refuse'],
])('of a service that refuses while the view is stale: %s', (protocol, expected) => {
  const outcomes = (spec: object) => {
    const cluster = new SmallCluster();
    cluster.apply([service('a', { ports: [{ port: 80, protocol }], endpoints: [{ address: '10.0.0.1' }], ...spec })]);
    const resource = cluster.state.service(a)?.resource;
    const [port] = resource?.spec.ports ?? [];
    if (resource === undefined || port === undefined) throw new Error('no service');
    return [true, false].map((fresh) => explainPort(cluster.state, resource, port, { ...node, fresh }).outcome);
  };
  const served = `new connections go to 1 of 1 endpoints`.replace('connections', protocol === 'tcp' ? 'connections' : 'flows');
  expect(outcomes({ onStale: 'refuse' })).toEqual([served, expected]);
  expect(outcomes({ onStale: 'serve' })).toEqual([served, served]);
  expect(outcomes({})).toEqual([served, served]);
});
