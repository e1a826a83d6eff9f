import { describe, expect, test } from 'vitest';
import { formatHealthRecord, healthKey } from '../../../src/domain/dataplane/health.js';
import { healthTargets, planHealth, type Wanted } from '../../../src/domain/dataplane/health-targets.js';
import type { NodeName } from '../../../src/domain/identity/model.js';
import { qualifiedName, type Resource } from '../../../src/domain/resource/model.js';
import { endpoints, SmallCluster, service } from '../../support/small-cluster.js';

const here = 'here' as NodeName;
const a = qualifiedName('default', 'a');
const health = { tcp: {} };

function targets(alone: boolean, ...resources: readonly Resource[]): readonly string[] {
  const cluster = new SmallCluster();
  cluster.apply(resources);
  return healthTargets(cluster.state, a, { nodeId: here, alone }).map(({ target }) => target);
}

test('a target has all that a check needs', () => {
  const cluster = new SmallCluster();
  const http = { path: '/healthz', status: 204 };
  const check = { health: { http, interval: '5s', timeout: '1s', rise: 1, fall: 4 } };
  cluster.apply([service('a', { ...check, endpoints: [{ address: '::1', port: 8080 }] })]);
  expect(healthTargets(cluster.state, a, { nodeId: here, alone: true })).toEqual([
    {
      key: 'health/default/a/[::1]:8080',
      service: 'default/a',
      target: '[::1]:8080',
      address: '::1',
      port: 8080,
      check: { http },
      intervalMs: 5_000,
      timeoutMs: 1_000,
      rise: 1,
      fall: 4,
    },
  ]);
});

describe('what a node checks', () => {
  const list = [{ address: '10.0.0.1', node: 'here' }, { address: '10.0.0.2', node: 'there' }, { address: '10.0.0.3' }];
  test.each<{ name: string; alone: boolean; resources: readonly Resource[]; expected: readonly string[] }>([
    {
      name: 'its own endpoints',
      alone: false,
      resources: [service('a', { health, endpoints: list })],
      expected: ['10.0.0.1:80'],
    },
    {
      name: 'those of no node as well when there is no other node',
      alone: true,
      resources: [service('a', { health, endpoints: list })],
      expected: ['10.0.0.1:80', '10.0.0.3:80'],
    },
    { name: 'nothing of a service without checks', alone: true, resources: [service('a', { endpoints: list })], expected: [] },
    { name: 'nothing of a service that is not there', alone: true, resources: [service('b', { health })], expected: [] },
    {
      name: 'those that are not ready as well, so that a verdict is there when they are',
      alone: true,
      resources: [service('a', { health }), endpoints('e', 'a', { address: '10.0.0.1', ready: false })],
      expected: ['10.0.0.1:80'],
    },
    {
      name: 'an address and port once',
      alone: true,
      resources: [
        service('a', { health, endpoints: [{ address: '10.0.0.1', node: 'here' }] }),
        endpoints('e', 'a', { address: '10.0.0.1' }),
      ],
      expected: ['10.0.0.1:80'],
    },
    {
      name: 'not what the first of two leaves to another node',
      alone: true,
      resources: [
        service('a', { health, endpoints: [{ address: '10.0.0.1', node: 'there' }] }),
        endpoints('e', 'a', { address: '10.0.0.1', node: 'here' }),
      ],
      expected: [],
    },
  ])('$name', ({ alone, resources, expected }) => {
    expect(targets(alone, ...resources)).toEqual(expected);
  });
});

describe('planHealth', () => {
  const key = healthKey(a, '10.0.0.1:80');
  const bad = { healthy: false, reason: 'refused', since: 5 };
  const mine = formatHealthRecord({ ...bad, node: here });
  const theirs = formatHealthRecord({ ...bad, node: 'there' as NodeName });

  test.each<{ name: string; held: string | null; wanted: Wanted; alone?: boolean; value: string | null | undefined }>([
    { name: 'a new verdict', held: null, wanted: bad, value: mine },
    { name: 'the same verdict', held: mine, wanted: bad, value: undefined },
    { name: "another node's verdict of an endpoint that came here", held: theirs, wanted: bad, value: mine },
    { name: 'no verdict yet', held: theirs, wanted: undefined, value: undefined },
    { name: 'one that is gone', held: mine, wanted: 'gone', value: null },
    { name: 'one that is gone and was never written', held: null, wanted: 'gone', value: undefined },
    { name: "another node's is left to it", held: theirs, wanted: 'gone', value: undefined },
    { name: "another node's is taken back where there is none", held: theirs, wanted: 'gone', alone: true, value: null },
  ])('$name', ({ held, wanted, alone = false, value }) => {
    const cluster = new SmallCluster();
    if (held !== null) cluster.write({ key, value: held });
    const plan = planHealth(cluster.state, [[key, wanted]], { nodeId: here, alone });
    const revision = held === null ? 0n : 1n;
    expect(plan).toEqual(
      value === undefined
        ? { changes: [], preconditions: [] }
        : { changes: [{ key, value }], preconditions: [{ key, revision }] },
    );
    const entry = cluster.log.propose(plan, 0);
    if (entry !== undefined) cluster.state.fold(entry);
    expect(planHealth(cluster.state, [[key, wanted]], { nodeId: here, alone }).changes).toEqual([]);
  });
});
