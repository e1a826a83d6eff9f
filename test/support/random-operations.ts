import fc from 'fast-check';
import type { Resource } from '../../src/domain/resource/model.js';
import { planDelete } from '../../src/domain/resource/plan.js';
import { type Committed, endpoints, type SmallCluster, service, serviceRef } from './small-cluster.js';

/** More names than a /28 has addresses, so that it runs out. */
export const SERVICE_NAMES = Array.from({ length: 16 }, (_, index) => `s${index}`);

export type Operation =
  | { readonly do: 'apply'; readonly resources: readonly Resource[]; readonly by: string; readonly prune: boolean }
  | { readonly do: 'delete'; readonly service: string }
  | { readonly do: 'delete-endpoints'; readonly name: string }
  | { readonly do: 'wait'; readonly ms: number };

const name = fc.constantFrom(...SERVICE_NAMES);
const endpoint = fc.record(
  {
    address: fc.constantFrom('127.0.0.1', '127.0.0.2', '::1'),
    weight: fc.constantFrom(1, 2),
    ports: fc.constantFrom({ http: 80 }, { http: 81 }),
  },
  { requiredKeys: ['address'] },
);
const apart = <T extends object>(list: readonly T[]) => list.map((value, index) => ({ ...value, name: `e${index}` }));
const several = fc
  .uniqueArray(endpoint, { maxLength: 3, selector: ({ address, ports }) => `${address} ${ports?.http}` })
  .map((list) => apart(list));
const ports = fc.subarray(
  [
    { name: 'http', port: 80 },
    { name: 'metrics', port: 90, targetPort: 91 },
  ],
  { minLength: 1 },
);
const anyService = fc
  .record(
    {
      ports,
      vip: fc.integer({ min: 2, max: 14 }).map((last) => `10.192.0.${last}`),
      drain: fc.constantFrom({ timeout: '30s' }, { timeout: '0s' }),
      balance: fc.constantFrom({ algorithm: 'random' }, { algorithm: 'round-robin' }),
    },
    { requiredKeys: [] },
  )
  .chain((spec) => fc.tuple(name, fc.constant(spec), spec.ports?.[0]?.name === 'metrics' ? fc.constant([]) : several))
  .map(([name, spec, list]) => service(name, { ...spec, endpoints: list }));
const anyEndpoints = fc
  .tuple(fc.constantFrom('x', 'y', 'z'), name, several, fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }))
  .map(([name, of, list, ready]) => endpoints(name, of, ...list.map((value, index) => ({ ...value, ready: ready[index] }))));

export const operations: fc.Arbitrary<readonly Operation[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('apply' as const),
        resources: fc.array(fc.oneof({ weight: 3, arbitrary: anyService }, { weight: 1, arbitrary: anyEndpoints }), {
          maxLength: 6,
        }),
        by: fc.constantFrom('one', 'two'),
        prune: fc.nat(9).map((of10) => of10 === 0),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), service: name }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delete-endpoints' as const), name: fc.constantFrom('x', 'y', 'z') }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 1_000, 30_000, 59_999, 65_000) }),
    },
  ),
  { maxLength: 60, size: 'max' },
);

/** What the operation committed, or why it was refused; what is not there is not deleted. */
export function perform(
  cluster: SmallCluster,
  operation: Operation,
): Committed | { readonly problems: readonly string[] } | undefined {
  switch (operation.do) {
    case 'wait':
      cluster.now += operation.ms;
      return undefined;
    case 'apply': {
      const plan = cluster.plan(operation.resources, operation);
      return 'problems' in plan ? { problems: plan.problems.map(({ message }) => message) } : cluster.commit(plan);
    }
    case 'delete':
      return remove(cluster, serviceRef(operation.service));
    case 'delete-endpoints':
      return remove(cluster, { ...serviceRef(operation.name), kind: 'Endpoints' });
  }
}

function remove(cluster: SmallCluster, ref: ReturnType<typeof serviceRef>): Committed | undefined {
  return cluster.state.get(ref) === undefined ? undefined : cluster.commit(planDelete([ref], cluster.context));
}
