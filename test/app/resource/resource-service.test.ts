import { describe, expect, test } from 'vitest';
import { logKey, type Proposal, revision } from '../../../src/domain/log/model.js';
import type { CallOptions } from '../../../src/ports/call-options.js';
import type { ApplyCall, ApplyOutcome, Resources } from '../../../src/ports/driving/resources.js';
import { FakeClock } from '../../fakes/fake-clock.js';
import { FakeOrderedLog } from '../../fakes/fake-ordered-log.js';
import {
  applyCall,
  documents,
  endpointsDocument,
  options,
  ref,
  resourceRig,
  serviceDocument,
} from '../../support/resource-rig.js';

/** Others write to it, each time just before a proposal of ours is judged. */
class BusyLog extends FakeOrderedLog {
  readonly rivals: Proposal[] = [];

  override async propose(proposal: Proposal, callOptions: CallOptions) {
    const rival = proposal.changes.length === 0 ? undefined : this.rivals.shift();
    if (rival !== undefined) await super.propose(rival, callOptions);
    return super.propose(proposal, callOptions);
  }
}

const actions = (outcome: ApplyOutcome) =>
  outcome.outcome === 'applied' ? outcome.resources.map(({ ref, action }) => `${action} ${ref.name}`) : outcome.problems;

const deleteCall = (...names: readonly string[]) => ({
  refs: names.map((name) => ref(name)),
  dryRun: false,
  ignoreNotFound: false,
});

describe('apply', () => {
  test('says what became of each document and where a service can be reached', async () => {
    const { resources, listeners } = await resourceRig();
    listeners.set('default/hello/http', { state: 'listening', port: 8080 });
    const endpoints = endpointsDocument('hello-a', 'hello', [{ address: '127.0.0.1' }]);
    expect(await resources.apply(applyCall([serviceDocument('hello'), endpoints]), options)).toEqual({
      outcome: 'applied',
      revision: 1n,
      resources: [
        {
          ref: ref('hello'),
          action: 'created',
          addresses: ['10.192.0.2:8080'],
          before: undefined,
          after: undefined,
          warnings: [],
        },
        {
          ref: ref('hello-a', 'Endpoints'),
          action: 'created',
          addresses: [],
          before: undefined,
          after: undefined,
          warnings: [],
        },
      ],
    });
  });

  test('the same again writes nothing and answers the head; a change is an update', async () => {
    const { resources, log } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('hello')]), options);
    const before = log.dump();
    const again = await resources.apply(applyCall([serviceDocument('hello')]), options);
    expect([again.outcome === 'applied' && again.revision, actions(again), log.dump()]).toEqual([
      1n,
      ['unchanged hello'],
      before,
    ]);
    const changed = await resources.apply(applyCall([serviceDocument('hello', { ports: [{ port: 81 }] })]), options);
    expect(actions(changed)).toEqual(['updated hello']);
  });

  test('a dry run shows both sides of each change and writes nothing', async () => {
    const { resources, log } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('hello')]), options);
    const before = log.dump();
    const changed = serviceDocument('hello', { ports: [{ name: 'http', port: 81 }] });
    const outcome = await resources.apply(applyCall([changed, serviceDocument('new')], { dryRun: true }), options);
    const port = (port: number) => ({ spec: { ports: [{ name: 'http', port, targetPort: port, protocol: 'tcp' }] } });
    expect(outcome).toMatchObject({
      resources: [
        { action: 'updated', addresses: [], before: port(80), after: port(81) },
        { action: 'created', addresses: [], before: undefined, after: port(80) },
      ],
    });
    expect(log.dump()).toBe(before);
  });

  test('prune removes what the same source applied before, and nothing else', async () => {
    const { resources } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('mine'), serviceDocument('old')], { prune: true }), options);
    await resources.apply(applyCall([serviceDocument('theirs')], { source: 'others' }), options);
    const outcome = await resources.apply(applyCall([serviceDocument('mine')], { prune: true }), options);
    expect(actions(outcome)).toEqual(['deleted old', 'unchanged mine']);
    expect((await resources.get({}, options)).objects.map(({ metadata }) => metadata.name)).toEqual(['mine', 'theirs']);
  });

  test('prune of nobody in particular is refused', async () => {
    const { resources } = await resourceRig();
    const call = applyCall([serviceDocument('a')], { prune: true, source: '' });
    await expect(resources.apply(call, options)).rejects.toMatchObject({ code: 'resource.invalid' });
  });

  test('warns of endpoints whose service is not there', async () => {
    const { resources } = await resourceRig();
    const outcome = await resources.apply(applyCall([endpointsDocument('e', 'later', [])]), options);
    expect(outcome).toMatchObject({ resources: [{ warnings: ['there is no service later yet in namespace default'] }] });
  });
});

describe('endpoints and their service in one request', () => {
  const web = endpointsDocument('e', 'web', [{ address: '127.0.0.1' }]);
  const warnings = async (resources: Resources, values: readonly unknown[], call: Partial<ApplyCall> = {}) => {
    const outcome = await resources.apply(applyCall(values, call), options);
    return outcome.outcome === 'applied' ? outcome.resources.flatMap((resource) => resource.warnings) : outcome;
  };

  test.each([true, false])('are no reason to warn, in whatever order (dry run: %s)', async (dryRun) => {
    const { resources } = await resourceRig();
    expect(await warnings(resources, [web, serviceDocument('web')], { dryRun })).toEqual([]);
    expect(await warnings(resources, [serviceDocument('web'), web], { dryRun })).toEqual([]);
  });

  test.each([true, false])('a service that the request removes is not there (dry run: %s)', async (dryRun) => {
    const { resources } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('web'), web]), options);
    const prune = { prune: true, dryRun };
    expect(await warnings(resources, [web], prune)).toEqual(['there is no service web yet in namespace default']);
  });
});

describe('what is wrong with the documents', () => {
  test('is located by file, document and path, all of it, and nothing is written', async () => {
    const { resources, log } = await resourceRig();
    const wrong = [serviceDocument('a', { ports: [{ port: 0 }] }), 7, serviceDocument('b', { port: 1 })];
    expect(await resources.apply(applyCall(wrong), options)).toMatchObject({
      outcome: 'invalid',
      problems: [
        { file: 'hello.yaml', document: 1, path: 'spec.ports[0].port' },
        { file: 'hello.yaml', document: 2, path: '' },
        { file: 'hello.yaml', document: 3, path: 'spec.port' },
      ],
    });
    expect(log.dump()).toBe('');
  });

  test('by its place in a list', async () => {
    const { resources } = await resourceRig();
    const place = { file: 'l.yaml', number: 2, path: 'items[3]' };
    const call = applyCall([], {
      documents: [
        { ...place, value: serviceDocument('a', { ports: [{ port: 0 }] }) },
        { ...place, path: 'items[4]', value: 7 },
      ],
    });
    expect(await resources.apply(call, options)).toMatchObject({
      problems: [
        { file: 'l.yaml', document: 2, path: 'items[3].spec.ports[0].port' },
        { file: 'l.yaml', document: 2, path: 'items[4]' },
      ],
    });
  });

  test('also what is wrong only beside the others', async () => {
    const { resources } = await resourceRig();
    const value = serviceDocument('a');
    const call = applyCall([], {
      documents: [
        { file: 'one.yaml', number: 1, path: 'items[2]', value },
        { file: 'two.yaml', number: 4, path: '', value },
      ],
    });
    const message = 'service/a is in the request already, in one.yaml: document 1, items[2]';
    const problem = { file: 'two.yaml', document: 4, path: 'metadata.name', message };
    expect(await resources.apply(call, options)).toMatchObject({ outcome: 'invalid', problems: [problem] });
  });

  test('is not more than somebody reads', async () => {
    const { resources } = await resourceRig();
    const outcome = await resources.apply(applyCall(Array.from({ length: 500 }, () => ({}))), options);
    expect(outcome.outcome === 'invalid' && outcome.problems.length).toBe(20);
  });

  test('more than 20,000 documents are refused before they are looked at', async () => {
    const { resources } = await resourceRig();
    expect(await resources.apply(applyCall(Array.from({ length: 20_001 }, () => ({}))), options)).toEqual({
      outcome: 'invalid',
      problems: [{ file: 'hello.yaml', document: 0, path: '', message: 'expected at most 20000 documents, found 20001' }],
    });
  });
});

describe('another writer', () => {
  const rival = (name: string): Proposal => ({
    changes: [{ key: logKey(`vip/10.192.0.${name}`), value: `{"service":"default/other-${name}"}` }],
    preconditions: [],
  });

  test('that was quicker is planned upon', async () => {
    const clock = new FakeClock();
    const log = new BusyLog({ clock });
    const { resources } = await resourceRig({ clock, log });
    log.rivals.push(rival('2'), rival('3'));
    const outcome = await resources.apply(applyCall([serviceDocument('hello')]), options);
    expect(outcome).toMatchObject({ revision: 3n, resources: [{ addresses: ['10.192.0.4:80'] }] });
  });

  test('that always is ends the tries', async () => {
    const clock = new FakeClock();
    const log = new BusyLog({ clock });
    const { resources } = await resourceRig({ clock, log });
    for (let number = 2; number < 20; number++) log.rivals.push(rival(String(number)));
    await expect(resources.apply(applyCall([serviceDocument('hello')]), options)).rejects.toMatchObject({
      code: 'resource.conflict',
    });
  });
});

describe('a request that is repeated after its answer was lost', () => {
  test('gets the first answer, and nothing is done twice', async () => {
    const { resources, log, listeners } = await resourceRig();
    const call = applyCall([serviceDocument('hello')], { requestId: 'r1' });
    const lost = new AbortController();
    listeners.hold();
    const first = resources.apply(call, { signal: lost.signal });
    while (log.dump() === '') await Promise.resolve();
    lost.abort(new Error('the connection broke'));
    await expect(first).rejects.toThrow('the connection broke');
    listeners.release();
    await resources.apply(applyCall([serviceDocument('hello', { ports: [{ port: 81 }] })]), options);
    const before = log.dump();
    const again = await resources.apply(call, options);
    expect([actions(again), again.outcome === 'applied' && again.revision]).toEqual([['created hello'], 1n]);
    expect(log.dump()).toBe(before);
  });

  test('a deletion as well', async () => {
    const { resources } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('hello')]), options);
    const call = { ...deleteCall('hello'), requestId: 'r1' };
    const first = await resources.delete(call, options);
    expect(await resources.delete(call, options)).toEqual(first);
  });

  test('also of a daemon that was started anew meanwhile', async () => {
    const { resources, make } = await resourceRig();
    const apply = applyCall([serviceDocument('hello')], { requestId: 'r1' });
    await resources.apply(apply, options);
    const again = await make().apply(apply, options);
    expect([actions(again), again.outcome === 'applied' && again.revision]).toEqual([['unchanged hello'], 1n]);
    const remove = { ...deleteCall('hello'), requestId: 'r2' };
    const first = await resources.delete(remove, options);
    expect(await make().delete(remove, options)).toEqual(first);
  });
});

describe('the wait for the data plane', () => {
  test('ends after five seconds, and holds up nobody else', async () => {
    const { resources, clock, listeners } = await resourceRig();
    listeners.hold();
    const done: string[] = [];
    void resources.apply(applyCall([serviceDocument('a')]), options).then(() => done.push(`a at ${clock.monotonic()}`));
    await clock.advance(3_000);
    void resources.apply(applyCall([serviceDocument('b')]), options).then(() => done.push(`b at ${clock.monotonic()}`));
    await clock.advance(1_999);
    expect(done).toEqual([]);
    await clock.advance(1);
    expect(done).toEqual(['a at 5000']);
    await clock.advance(3_000);
    expect(done).toEqual(['a at 5000', 'b at 8000']);
    expect(clock.sleepers).toBe(1);
  });
});

describe('a view that does not follow', () => {
  test('is waited for by get, which then has everything', async () => {
    const { resources, clock, log, view } = await resourceRig({ following: false });
    const value = '{"kind":"Service","metadata":{"name":"a","namespace":"default","labels":{}},"source":"s","spec":{"ports":[]}}';
    await log.propose({ changes: [{ key: logKey('service/default/a'), value }], preconditions: [] }, options);
    const got = resources.get({}, options);
    await clock.advance(4_000);
    await view.start();
    expect(await got).toMatchObject({ revision: 1n, objects: [{ metadata: { name: 'a' } }] });
    await view.stop();
  });

  test('is an error after five seconds, for get, apply and watch', async () => {
    const { resources, clock } = await resourceRig({ following: false });
    const calls = [
      resources.get({}, options),
      resources.apply(applyCall([serviceDocument('a')]), options),
      resources.watch({}, options)[Symbol.asyncIterator]().next(),
    ];
    const outcomes = Promise.allSettled(calls);
    await clock.advance(5_000);
    const failed = (code: string) => ({ status: 'rejected', reason: expect.objectContaining({ code }) });
    expect(await outcomes).toEqual(['log.not_current', 'log.not_written', 'log.not_current'].map(failed));
  });
});

describe('turns', () => {
  test('a call that is aborted while it waits rejects at once; who stands behind it waits for the first', async () => {
    const { resources, clock, view } = await resourceRig({ following: false });
    const first = resources.apply(applyCall([serviceDocument('a')]), options);
    const abort = new AbortController();
    const second = resources.apply(applyCall([serviceDocument('b')]), { signal: abort.signal });
    const third = resources.apply(applyCall([serviceDocument('c')]), options);
    await clock.advance(1_000);
    abort.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    await view.start();
    expect([await first, await third]).toMatchObject([{ revision: 1n }, { revision: 2n }]);
    await view.stop();
  });

  test('one that fails does not hold up the next', async () => {
    const { resources, log } = await resourceRig();
    log.failNext();
    const first = resources.apply(applyCall([serviceDocument('a')]), options);
    const second = resources.apply(applyCall([serviceDocument('b')]), options);
    await expect(first).rejects.toMatchObject({ code: 'log.not_written' });
    expect(await second).toMatchObject({ revision: revision(1n) });
  });
});

describe('delete', () => {
  test('removes all or nothing', async () => {
    const { resources } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('a'), serviceDocument('b')]), options);
    await expect(resources.delete(deleteCall('a', 'absent'), options)).rejects.toMatchObject({ code: 'resource.not_found' });
    expect((await resources.get({}, options)).objects).toHaveLength(2);
    expect(await resources.delete(deleteCall('a', 'b', 'a'), options)).toEqual({ revision: 2n, deleted: [ref('a'), ref('b')] });
    expect((await resources.get({}, options)).objects).toEqual([]);
  });

  test('what is absent can be ignored, and a dry run removes nothing', async () => {
    const { resources } = await resourceRig();
    await resources.apply(applyCall([serviceDocument('a')]), options);
    const call = { ...deleteCall('a', 'absent'), ignoreNotFound: true };
    expect(await resources.delete({ ...call, dryRun: true }, options)).toEqual({ revision: 1n, deleted: [ref('a')] });
    expect((await resources.get({}, options)).objects).toHaveLength(1);
    expect(await resources.delete(call, options)).toEqual({ revision: 2n, deleted: [ref('a')] });
    expect(await resources.delete(call, options)).toEqual({ revision: 2n, deleted: [] });
  });
});

describe('get', () => {
  test.each([
    [{}, ['Endpoints a', 'Service a', 'Service b']],
    [{ kind: 'Service' as const }, ['Service a', 'Service b']],
    [{ namespace: 'default', name: 'a' }, ['Endpoints a', 'Service a']],
    [{ kind: 'Service' as const, namespace: 'default', name: 'b' }, ['Service b']],
    [{ kind: 'Service' as const, namespace: 'default', name: 'b', labels: 'tier=web' }, []],
    [{ namespace: 'other' }, []],
    [{ labels: 'tier=web' }, ['Service a']],
    [{ labels: '' }, ['Endpoints a', 'Service a', 'Service b']],
  ])('selects by %j, in order', async (selector, expected) => {
    const { resources } = await resourceRig();
    const values = [serviceDocument('b'), endpointsDocument('a', 'a', []), serviceDocument('a', {}, { tier: 'web' })];
    await resources.apply({ ...applyCall([]), documents: documents(...values) }, options);
    const { objects } = await resources.get(selector, options);
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(expected);
  });

  test('a selector that cannot be read is refused', async () => {
    const { resources } = await resourceRig();
    await expect(resources.get({ labels: '=' }, options)).rejects.toMatchObject({ code: 'resource.invalid' });
  });
});
