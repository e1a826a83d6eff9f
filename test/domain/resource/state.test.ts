import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Entry, LogId } from '../../../src/domain/log/model.js';
import { logKey, revision, ZERO_DIGEST } from '../../../src/domain/log/model.js';
import { qualifiedName } from '../../../src/domain/resource/model.js';
import { ClusterState } from '../../../src/domain/resource/state.js';
import { operations, perform, SERVICE_NAMES } from '../../support/random-operations.js';
import { endpoints, SmallCluster, service, serviceRef } from '../../support/small-cluster.js';

/** All that a state can be asked. */
function dump(state: ClusterState, { range }: SmallCluster): object {
  const names = SERVICE_NAMES.map((name) => qualifiedName('default', name));
  const byKey = <T>([a]: readonly [string, T], [b]: readonly [string, T]) => (a < b ? -1 : 1);
  return {
    cursor: state.cursor,
    time: state.time,
    size: state.size,
    vipRange: state.vipRange,
    resources: [...state.all()]
      .map((held) => [`${held.resource.kind}/${held.resource.metadata.name}`, held] as const)
      .sort(byKey),
    endpoints: names.map((name) => state.endpointsOf(name)),
    vips: [...state.vips.entries()].sort(byKey),
    ofService: names.map((name) => state.vips.ofService(name)),
    released: [...state.vips.released()],
    lowestUnused: state.vips.lowestUnused(range),
  };
}

function stateOf({ log }: SmallCluster): ClusterState {
  const state = new ClusterState();
  state.replace(log.snapshot());
  return state;
}

describe('laws of the state', () => {
  test('folds, a snapshot, and a snapshot on an older state give the same, and the same plans', () => {
    fc.assert(
      fc.property(operations, fc.nat(59), (list, restartAt) => {
        const cluster = new SmallCluster('10.192.0.0/28');
        const stale = new ClusterState();
        for (const [index, operation] of list.entries()) {
          perform(cluster, operation);
          if (index === restartAt) stale.replace(cluster.log.snapshot());
        }
        const restarted = stateOf(cluster);
        stale.replace(cluster.log.snapshot());
        expect(dump(restarted, cluster)).toEqual(dump(cluster.state, cluster));
        expect(dump(stale, cluster)).toEqual(dump(cluster.state, cluster));

        const next = { resources: SERVICE_NAMES.slice(3, 9).map((name) => service(name)), by: 'one', prune: true };
        const plan = cluster.plan(next.resources, next);
        const other = new SmallCluster('10.192.0.0/28');
        other.state.replace(cluster.log.snapshot());
        other.now = cluster.now;
        expect(other.plan(next.resources, next)).toEqual(plan);
      }),
      { numRuns: 150 },
    );
  });

  test('the snapshot of another log leaves nothing of the former', () => {
    fc.assert(
      fc.property(operations, operations, (before, after) => {
        const [one, two] = [new SmallCluster('10.192.0.0/28'), new SmallCluster('10.192.0.0/28')];
        for (const operation of before) perform(one, operation);
        for (const operation of after) perform(two, operation);
        const snapshot = two.log.snapshot();
        const moved = { ...snapshot, cursor: { ...snapshot.cursor, logId: 'another' as LogId } };
        const fresh = new ClusterState();
        fresh.replace(moved);
        one.state.replace(moved);
        expect(dump(one.state, one)).toEqual(dump(fresh, one));
      }),
      { numRuns: 50 },
    );
  });
});

describe('ClusterState', () => {
  const refs = (touched: ReturnType<ClusterState['fold']> | undefined) => ({
    services: [...(touched?.services ?? [])].sort(),
    changes: (touched?.changes ?? []).map(
      ({ ref, before, after }) => `${ref.kind}/${ref.name} ${before?.revision ?? '-'} > ${after?.revision ?? '-'}`,
    ),
  });

  test('before the first snapshot there is nowhere to go on from', () => {
    expect(new ClusterState().cursor).toBeUndefined();
    expect(new SmallCluster().state.cursor).toEqual({ logId: 'small-log', revision: 0n, digest: ZERO_DIGEST });
  });

  test('what is touched: a service, both services of Endpoints that move, nothing of an unchanged one', () => {
    const cluster = new SmallCluster();
    const touched = (...resources: Parameters<SmallCluster['apply']>[0]) => refs(cluster.apply(resources).touched);
    expect(touched(service('a'), service('b'))).toEqual({
      services: ['default/a', 'default/b'],
      changes: ['Service/a - > 1', 'Service/b - > 1'],
    });
    expect(touched(endpoints('e', 'a'))).toEqual({ services: ['default/a'], changes: ['Endpoints/e - > 2'] });
    expect(touched(endpoints('e', 'b'), service('a'))).toEqual({
      services: ['default/a', 'default/b'],
      changes: ['Endpoints/e 2 > 3'],
    });
    expect(touched(service('a'))).toEqual({ services: [], changes: [] });
    expect(refs(cluster.delete(serviceRef('a')).touched)).toEqual({ services: ['default/a'], changes: ['Service/a 1 > -'] });
  });

  test('a snapshot of the same log changes what changed since', () => {
    const cluster = new SmallCluster();
    cluster.apply([service('a'), service('b'), service('c')]);
    const late = stateOf(cluster);
    cluster.delete(serviceRef('a'));
    cluster.apply([service('b', { drain: { timeout: '1s' } }), service('d')]);
    expect(refs(late.replace(cluster.log.snapshot())).changes).toEqual(['Service/a 1 > -', 'Service/b 1 > 3', 'Service/d - > 3']);
    expect(refs(late.replace(cluster.log.snapshot())).changes).toEqual([]);
  });

  test('an address that goes to another service touches both', () => {
    const cluster = new SmallCluster();
    cluster.apply([service('a')]);
    const touched = cluster.write({ key: logKey('vip/10.192.0.2'), value: '{"service":"default/b"}' });
    expect(refs(touched)).toEqual({ services: ['default/a', 'default/b'], changes: [] });
  });

  test('the Endpoints objects of a service are in the order of their names', () => {
    const cluster = new SmallCluster();
    for (const name of ['b', 'c', 'a']) cluster.apply([endpoints(name, 's')]);
    expect(cluster.state.endpointsOf(qualifiedName('default', 's')).map(({ metadata }) => metadata.name)).toEqual([
      'a',
      'b',
      'c',
    ]);
    expect(cluster.state.endpointsOf(qualifiedName('default', 'a'))).toEqual([]);
  });

  test('keys of other capabilities move the revision and nothing else', () => {
    const cluster = new SmallCluster();
    expect(refs(cluster.write({ key: logKey('node/n1'), value: '{}' }, { key: logKey('settings/other'), value: '1' }))).toEqual({
      services: [],
      changes: [],
    });
    expect(cluster.state.revision).toBe(1n);
  });

  test('E2: a part of the log is followed over what it lacks, by entries as by passing on', () => {
    const cluster = new SmallCluster();
    const part = new ClusterState();
    part.replace(cluster.log.snapshot());
    const at = () => part.cursor?.digest ?? ZERO_DIGEST;
    const other = () => cluster.write({ key: logKey('secret/default/x'), value: String(cluster.log.snapshot().cursor.revision) });
    other();
    const { entry } = cluster.apply([service('a')]);
    if (entry === undefined) throw new Error('no entry');
    const seen = { ...entry, previousDigest: at() };
    expect(() => part.fold(seen)).toThrow('entry 2 does not follow 0');
    expect(refs(part.fold(seen, part.revision)).services).toEqual(['default/a']);
    other();
    const { revision: to, digest } = cluster.log.snapshot().cursor;
    expect(() => part.pass(revision(1n), to, digest)).toThrow('3 does not follow 2');
    part.pass(part.revision, to, digest);
    expect([part.cursor, part.time]).toEqual([cluster.log.snapshot().cursor, cluster.now]);
    expect([...part.all()]).toEqual([...cluster.state.all()]);
  });

  test.each<{ name: string; change: (entry: Entry) => Entry; error: string }>([
    {
      name: 'that leaves one out',
      change: (entry) => ({ ...entry, revision: revision(entry.revision + 1n) }),
      error: 'entry 3 does not follow 1',
    },
    { name: 'that came already', change: (entry) => ({ ...entry, revision: revision(1n) }), error: 'entry 1 does not follow 1' },
    {
      name: 'of another history',
      change: (entry) => ({ ...entry, previousDigest: ZERO_DIGEST }),
      error: 'entry 2 does not follow 1',
    },
    { name: 'of a newer format', change: (entry) => ({ ...entry, version: 2 }), error: 'entry 2 is of version 2' },
  ])('an entry $name is refused, and the state stays', ({ change, error }) => {
    const cluster = new SmallCluster();
    cluster.apply([service('a')]);
    const before = dump(cluster.state, cluster);
    const plan = cluster.plan([service('b')]);
    const entry = 'problems' in plan ? undefined : cluster.log.propose(plan, cluster.now);
    expect(() => entry && cluster.state.fold(change(entry))).toThrow(new RangeError(error));
    expect(dump(cluster.state, cluster)).toEqual(before);
  });

  test('an entry or a snapshot with a value that cannot be read is taken not at all', () => {
    const cluster = new SmallCluster();
    cluster.apply([service('a')]);
    const before = dump(cluster.state, cluster);
    const changes = [
      { key: logKey('service/default/a'), value: null },
      { key: logKey('service/default/b'), value: '{' },
    ];
    const entry = cluster.log.propose({ changes }, cluster.now);
    expect(() => entry && cluster.state.fold(entry)).toThrow(SyntaxError);
    expect(dump(cluster.state, cluster)).toEqual(before);
    expect(() => cluster.state.replace(cluster.log.snapshot())).toThrow(SyntaxError);
    expect(dump(cluster.state, cluster)).toEqual(before);
  });

  test('a name that cannot be one is not there', () => {
    expect(new ClusterState().get(serviceRef('not a name'))).toBeUndefined();
  });
});
